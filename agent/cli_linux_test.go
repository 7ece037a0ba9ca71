package agent

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent/internal/agenttest"
	"github.com/errand-fleet/errand/internal/fake/modelfake"
	"github.com/errand-fleet/errand/internal/fake/modelfake/clitest"
)

// The tests of this file run the real CLI, as package.json pins it, against a model that is a server on loopback.

// newCLI is a runner of the real CLI.
func newCLI(t *testing.T, model *modelfake.Server, change ...func(*Config)) *Runner {
	t.Helper()
	c := Config{
		CLI: clitest.Find(t), LogDir: t.TempDir(), TempDir: agenttest.ShortTemp(t), BaseURL: model.URL(),
		Grace: 5 * time.Second, Credential: Credential{APIKey: "sk-ant-test-credential"},
		Redactor: NewRedactor("sk-ant-test-credential"),
	}
	for _, f := range change {
		f(&c)
	}
	r, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// newModel is a model that answers any prompt with these turns, or as Answer says later.
func newModel(t *testing.T, turns ...modelfake.Turn) *modelfake.Server {
	t.Helper()
	m := modelfake.New()
	t.Cleanup(m.Close)
	if len(turns) > 0 {
		m.Answer("", turns...)
	}
	return m
}

// with completes a run's specification.
func (b *bench) with(t *testing.T, s Spec) Spec {
	s.ID = cmp.Or(s.ID, unique(strings.ToLower(strings.NewReplacer("/", ".", "_", "-").Replace(t.Name()))))
	s.Prompt.Text, s.Profile, s.Dir = cmp.Or(s.Prompt.Text, "hello"), cmp.Or(s.Profile, Read), cmp.Or(s.Dir, b.dir)
	return s
}

// runCLI makes a run of the Read profile with any prompt in an empty directory, unless s says otherwise.
func runCLI(t *testing.T, r *Runner, s Spec, h Host) Result {
	t.Helper()
	s.ID = unique(s.ID)
	s.Prompt.Text = cmp.Or(s.Prompt.Text, "x")
	res := (&bench{Runner: r, dir: t.TempDir()}).run(t, t.Context(), s, h)
	if t.Failed() {
		log, _ := os.ReadFile(r.logPath(s.ID, ".log"))
		t.Logf("log:\n%s", log)
	}
	return res
}

// A conversation goes on in another directory, as on another worker, with another context. The usage of a run is
// reported while it works and after each turn; in a resumed conversation only the run's own share.
func TestCLIAnswersAndResumes(t *testing.T) {
	t.Parallel()
	model, gate := newModel(t), make(chan struct{})
	const words = "You said {{prompt}}; that makes {{turns}}."
	model.Answer("blue", bash("true"), modelfake.Turn{Text: words, Gate: gate})
	model.Answer("red", modelfake.Turn{Text: words})
	r := newCLI(t, model)
	r.usedEvery = 20 * time.Millisecond
	var told []Event
	h := &host{on: func(e Event) {
		if e.Kind != Used {
			return
		}
		if told = append(told, e); len(told) == 1 {
			close(gate) // the turn goes on only once there is news of it
		}
	}}
	first := runCLI(t, r, Spec{
		ID: "first", Prompt: Message{Text: "blue"}, System: "Speak of colours.", Profile: Write,
	}, h)
	if first.Outcome != Done || first.Text != "You said blue; that makes 1." || len(first.Session.Data) == 0 ||
		first.Model == "" {
		t.Fatalf("first = %+v", first)
	}
	if streamed := h.said(Text); streamed != first.Text {
		t.Errorf("streamed %q", streamed)
	}
	if len(told) < 2 || told[0].CostUSD <= 0 || told[0].Usage.Output >= first.Usage.Output {
		t.Fatalf("reported %+v of %+v", told, first.Usage)
	}
	if last := told[len(told)-1]; *last.Usage != first.Usage || last.CostUSD != first.CostUSD {
		t.Errorf("in the end %+v, $%f; want %+v, $%f", *last.Usage, last.CostUSD, first.Usage, first.CostUSD)
	}
	again := &host{}
	second := runCLI(t, r, Spec{
		ID: "second", Prompt: Message{Text: "red"}, System: "Speak of shapes.", Profile: Write, Resume: &first.Session,
	}, again)
	if second.Text != "You said red; that makes 2." || second.Session.ID != first.Session.ID {
		t.Errorf("second = %+v", second)
	}
	if second.CostUSD <= 0 || second.CostUSD >= first.CostUSD {
		t.Errorf("cost of the second run, of one call, %f, of the first, of two, %f", second.CostUSD, first.CostUSD)
	}
	for _, e := range again.events {
		if e.Kind == Used && (*e.Usage == Usage{} || e.Usage.Input > second.Usage.Input || e.CostUSD > second.CostUSD) {
			t.Errorf("of the second run %+v, $%f; it used %+v, $%f", *e.Usage, e.CostUSD, second.Usage, second.CostUSD)
		}
	}
	calls := model.Requests()
	if n := len(calls); n != 3 || !strings.Contains(calls[0].System, "Speak of colours.") ||
		!strings.Contains(calls[2].System, "Speak of shapes.") {
		t.Errorf("%d requests; the context did not reach the model", n)
	}
	if calls[0].Key != "sk-ant-test-credential" {
		t.Errorf("the model saw key %q", calls[0].Key)
	}
}

// Every credential reaches the model, and no tool sees one, or where the worker's private key lies, whatever it looks at.
func TestCLICredentials(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]Credential{
		"key": {APIKey: "sk-ant-test-123456"}, "oauth": {OAuthToken: "oauth-test-123456"},
		"bearer": {AuthToken: "bearer-test-123456"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model, dir := newModel(t), t.TempDir()
			look := "env > env.txt; cat /proc/$PPID/environ /proc/$PPID/cmdline >> env.txt; grep -rh . $CLAUDE_CONFIG_DIR $HOME $TMPDIR >> env.txt; true"
			model.Answer("", bash(look), modelfake.Turn{Text: "ok"})
			const key = "/x/client.key"
			r := newCLI(t, model, func(cfg *Config) {
				cfg.Credential, cfg.Redactor = c, nil
				cfg.Getenv = func(name string) string {
					if name == "CLAUDE_CODE_CLIENT_KEY" {
						return key
					}
					return os.Getenv(name)
				}
			})
			res := runCLI(t, r, Spec{ID: "cred-" + name, Dir: dir, Profile: Write}, &host{})
			if res.Text != "ok" {
				t.Fatalf("result %+v", res)
			}
			secret := c.APIKey + c.OAuthToken + c.AuthToken
			if got := model.Requests()[0].Key; got != secret {
				t.Errorf("the model saw %q", got)
			}
			env, err := os.ReadFile(filepath.Join(dir, "env.txt"))
			if err != nil || len(env) == 0 {
				t.Fatalf("env.txt: %v", err)
			}
			if bytes.Contains(env, []byte(secret)) || bytes.Contains(env, []byte(key)) {
				t.Error("a tool can read the credential, or the path of the private key")
			}
			if !bytes.Contains(env, []byte("ANTHROPIC_BASE_URL=http://127.0.0.1:")) ||
				bytes.Contains(env, []byte(model.URL())) {
				t.Error("the CLI knows another way to the model than the gateway")
			}
			if log := r.read(t, "cred-"+name, ".log"); strings.Contains(log, "the gateway ") {
				t.Errorf("the gateway refuses a model, or drops a beta header:\n%s", log)
			}
		})
	}
}

func TestCLIWrites(t *testing.T) {
	t.Parallel()
	model, dir, outside := newModel(t), t.TempDir(), t.TempDir()
	model.Answer("",
		call("Write", "file_path", filepath.Join(dir, "in.txt"), "content", "inside"),
		call("Write", "file_path", filepath.Join(outside, "out.txt"), "content", "outside"),
		bash("mkdir made && echo done"),
		modelfake.Turn{Text: "Written."})
	h := &host{}
	res := runCLI(t, newCLI(t, model), Spec{ID: "writes", Dir: dir, Prompt: Message{Text: "write"}, Profile: Write}, h)
	if res.Text != "Written." {
		t.Errorf("result = %+v", res)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "in.txt")); err != nil || string(b) != "inside" {
		t.Errorf("in.txt: %q, %v", b, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "made")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(outside, "out.txt")); err == nil {
		t.Error("the agent wrote outside its directory")
	}
	if words := h.said(ToolUse); !strings.HasPrefix(words, "Writing in.txt") ||
		!strings.HasSuffix(words, "Running mkdir made && echo done") {
		t.Errorf("words = %q", words)
	}
}

// The read profiles have neither commands nor writing, and see nothing outside their directories. They have the tools of
// the host and the servers of their profile; runs on a stranger's content have no servers.
func TestCLIReadsOnly(t *testing.T) {
	t.Parallel()
	for profile, servers := range map[Profile][]string{
		Read:      {"mcp__all__ask", "mcp__all__tell", "mcp__readers__ask", "mcp__readers__tell"},
		Untrusted: nil,
	} {
		t.Run(string(profile), func(t *testing.T) {
			t.Parallel()
			model := newModel(t)
			readsOnly(t, model, profile)
			knows(t, model)
			offersServers(t, model, append(servers, "mcp__errand__add"))
			if got := answered(t, model); got[len(got)-1] != "false it is 42" {
				t.Errorf("results of tools: %q", got)
			}
		})
	}
}

// readsOnly has an agent without a sandbox try each tool of a profile on files inside and outside of its directory, and
// then the tool of the host, without approval.
func readsOnly(t *testing.T, model *modelfake.Server, profile Profile) {
	t.Helper()
	dir, outside := t.TempDir(), t.TempDir()
	put(t, dir, map[string]string{"x.txt": "INNER"})
	put(t, outside, map[string]string{"x.txt": "SECRET-OUTSIDE", "unnamed.txt": ""})
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	read := func(path string) modelfake.Turn { return call("Read", "file_path", path) }
	grep := func(path string) modelfake.Turn {
		return call("Grep", "pattern", "SECRET", "path", path, "output_mode", "content")
	}
	find := func(path, pattern string) modelfake.Turn {
		return call("Glob", "path", path, "pattern", pattern)
	}
	refused := []modelfake.Turn{
		read(filepath.Join(outside, "x.txt")), read("link/x.txt"), read("../" + filepath.Base(outside) + "/x.txt"),
		read("/proc/self/root" + filepath.Join(outside, "x.txt")), grep(outside), grep("link"), find(outside, "*.txt"),
		find(dir, outside+"/*.txt"),
		bash("touch " + filepath.Join(dir, "touched")),
		call("Write", "file_path", filepath.Join(dir, "touched"), "content", "x"),
	}
	made := []modelfake.Turn{ // the CLI finds nothing for the last two, and does not ask
		read(filepath.Join(dir, "x.txt")), grep("."), find(dir, "../*/*.txt"), find(dir, "link/*"),
	}
	turns := slices.Concat(made, refused)
	model.Answer("", append(turns, modelfake.Turn{Text: "Read."})...)
	model.Answer("Add.", modelfake.Turn{Tools: []modelfake.ToolCall{adding()}}, modelfake.Turn{Text: "Added."})
	h := refuse(t)
	h.more = []Message{{Text: "Add."}}
	res := runCLI(t, newCLI(t, model, tellers(t)), Spec{
		ID: "reads-" + string(profile), Dir: dir, Profile: profile, Tools: []Tool{sum()},
		Prompt: Message{Text: "read @" + filepath.Join(outside, "x.txt") + " @link/x.txt"},
	}, h)
	if res.Text != "Read.\n\nAdded." {
		t.Errorf("result = %+v", res)
	}
	var failed []bool
	for _, e := range h.events {
		if e.Kind == ToolResult {
			failed = append(failed, e.Error)
		}
	}
	want := append(append(make([]bool, len(made)), slices.Repeat([]bool{true}, len(refused))...), false)
	if !slices.Equal(failed, want) {
		t.Errorf("failed: %v, want %v", failed, want)
	}
	for _, r := range model.Requests() {
		for _, outer := range []string{"SECRET-OUTSIDE", "unnamed.txt"} {
			if strings.Contains(string(r.Body), outer) {
				t.Errorf("%s of a directory outside reached the model", outer)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "touched")); err == nil {
		t.Error("something was changed")
	}
}

// A tool's shell has a separate session, and its daemons leave even that.
func TestCLIToolsDieWithTheRun(t *testing.T) {
	t.Parallel()
	model, dir := newModel(t), t.TempDir()
	fifo := filepath.Join(dir, "alive")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	model.Answer("", bash("exec 9>alive; (nohup sleep 600 >/dev/null 2>&1 &) ; (setsid env -i /bin/bash -c 'echo started >&9; exec /bin/sleep 600' &) ; tail -f /dev/null"))
	ctx, cancel := context.WithCancelCause(t.Context())
	alive := make(chan *os.File, 1)
	go func() {
		f, err := os.Open(fifo) // waits for the tool
		if err == nil {
			_, err = io.ReadFull(f, make([]byte, len("started")))
		}
		cancel(errors.Join(errors.New("enough"), err))
		alive <- f
	}()
	res, err := newCLI(t, model).Run(ctx, Spec{
		ID: "tools", Dir: dir, Prompt: Message{Text: "x"}, Profile: Write,
	}, &host{})
	// The CLI itself kills what stayed in the tool's session, if it comes to that; the keeper has to find what left it.
	if err != nil || res.Outcome != Stopped || res.Resources.Swept < 1 {
		t.Errorf("outcome %s, swept %d, %v; want stopped, and a process swept", res.Outcome, res.Resources.Swept, err)
	}
	f := <-alive
	defer f.Close()
	_ = f.SetReadDeadline(time.Now().Add(2 * time.Minute))
	if _, err := io.Copy(io.Discard, f); err != nil {
		t.Errorf("a process of the tool is alive: %v", err)
	}
}

func TestCLIHealthNamesTheRemedy(t *testing.T) {
	t.Parallel()
	model := newModel(t)
	none := newCLI(t, model, func(c *Config) { c.Credential = Credential{} })
	if h := none.Health(t.Context()); h.OK || h.LoggedIn || h.Version == "" ||
		!strings.Contains(h.Remedy, "ANTHROPIC_API_KEY") || h.Error.Class != ClassAuth {
		t.Errorf("without a credential: %+v", h)
	}
	script, err := filepath.Abs(filepath.Join("testdata", "old", "claude"))
	if err != nil {
		t.Fatal(err)
	}
	old := newCLI(t, model, func(c *Config) { c.CLI = script })
	if h := old.Health(t.Context()); h.OK || h.Error.Class != ClassCLIVersion {
		t.Errorf("too old: %+v", h)
	}
	script = filepath.Join(t.TempDir(), "claude")
	coming := "#!/bin/sh\n[ \"$1\" = --version ] && echo '9.0.0 (Claude Code)' && exit\nexec " + clitest.Find(t) + " \"$@\"\n"
	if err := os.WriteFile(script, []byte(coming), 0o700); err != nil {
		t.Fatal(err)
	}
	newer := newCLI(t, model, func(c *Config) { c.CLI = script })
	if h := newer.Health(t.Context()); !h.OK || h.Untested() == "" || !slices.Contains(h.Notices, h.Untested()) {
		t.Errorf("newer: %+v", h)
	}
	keeper := filepath.Join(filepath.Dir(self), "errand-keeper")
	if h := newCLI(t, model).Health(t.Context()); !h.OK || h.Untested() != "" || h.Keeper != keeper || !h.Gateway ||
		strings.Contains(strings.Join(h.Notices, ";"), "ERRAND_GATEWAY") {
		t.Errorf("tested: %+v", h)
	}
	missing := newCLI(t, model, func(c *Config) { c.CLI = "/nowhere/claude" })
	if h := missing.Health(t.Context()); h.OK || h.Error.Class != ClassCLIMissing ||
		!strings.Contains(h.Remedy, "npm ci") {
		t.Errorf("missing: %+v", h)
	}
	deep := filepath.Join(t.TempDir(), strings.Repeat("x", 60))
	if err := os.Mkdir(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	long := newCLI(t, model, func(c *Config) { c.TempDir = deep })
	if h := long.Health(t.Context()); h.OK || h.Error.Class != ClassWorkspace ||
		h.Remedy != "choose a shorter TMPDIR" {
		t.Errorf("long: %+v", h)
	}
}

// A worker of another version than errand-keeper runs nothing and says why.
func TestHealthNamesTheKeeper(t *testing.T) {
	t.Parallel()
	other := newCLI(t, newModel(t), func(c *Config) { c.Keeper = "/bin/echo" })
	if h := other.Health(t.Context()); h.OK || h.Error.Class != ClassConfig ||
		!strings.Contains(h.Problem, "/bin/echo cannot be used: it has version") ||
		!strings.Contains(h.Remedy, "install errand-keeper") {
		t.Errorf("another: %+v", h)
	}
	_, err := other.Run(t.Context(), Spec{
		ID: unique("other-keeper"), Dir: t.TempDir(), Prompt: Message{Text: "x"}, Profile: Read,
	}, &host{})
	if e, ok := errors.AsType[*Error](err); !ok || e.Class != ClassConfig ||
		!strings.Contains(e.Remedy, "install errand-keeper") {
		t.Errorf("run: %v", err)
	}
}
