package agent

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent/internal/agenttest"
	"github.com/errand-fleet/errand/agent/internal/keeper"
	"github.com/errand-fleet/errand/agent/internal/protocol"
	"github.com/google/go-cmp/cmp"
)

// host records its calls and answers as its fields say.
type host struct {
	permit func(ToolRequest) Decision
	asked  func(context.Context)                 // instead of permit
	next   []Message                             // handed over while the run lives
	hand   func(context.Context) (Message, bool) // instead of next
	rests  func()                                // called at idle
	more   []Message                             // handed over at idle, one after another
	idled  int                                   // how often that was asked
	on     func(Event)

	mu     sync.Mutex
	events []Event
}

func (h *host) Event(e Event) {
	h.mu.Lock()
	h.events = append(h.events, e)
	h.mu.Unlock()
	if h.on != nil {
		h.on(e)
	}
}

// onFirstText returns a function for on that calls f when the first piece of text arrives. The end of a text that may
// begin a secret arrives later, perhaps when the CLI has ended.
func onFirstText(f func()) func(Event) {
	var once sync.Once
	return func(e Event) {
		if e.Kind == Text {
			once.Do(f)
		}
	}
}

func (h *host) Permit(ctx context.Context, r ToolRequest) Decision {
	if h.asked != nil {
		h.asked(ctx)
		return Decision{}
	}
	return h.permit(r)
}

func (h *host) Next(ctx context.Context) (Message, bool) {
	if h.hand != nil {
		return h.hand(ctx)
	}
	if len(h.next) > 0 {
		m := h.next[0]
		h.next = h.next[1:]
		return m, true
	}
	<-ctx.Done()
	return Message{}, false
}

func (h *host) Idle(context.Context) (Message, bool) {
	if h.idled++; h.rests != nil {
		h.rests()
	}
	if len(h.more) == 0 {
		return Message{}, false
	}
	m := h.more[0]
	h.more = h.more[1:]
	return m, true
}

// askAll leaves every call to Host.Permit.
var askAll = []Rule{{Tool: "*", Action: Ask}}

// bench is a runner of the fake CLI in one mode, and what belongs to it.
type bench struct {
	*Runner
	dir   string
	alive agenttest.Alive
}

func newBench(t *testing.T, mode string, change ...func(*Config)) *bench {
	t.Helper()
	dir := t.TempDir()
	alive := agenttest.NewAlive(t, dir)
	c := Config{
		CLI: fake, LogDir: filepath.Join(dir, "logs"), Grace: time.Second, Redactor: NewRedactor("sk-ant-test-secret"),
		Env: map[string]string{"AGENT_TEST_MODE": mode, "AGENT_TEST_ALIVE": alive.Path},
	}
	for _, f := range change {
		f(&c)
	}
	r, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return &bench{Runner: r, dir: dir, alive: alive}
}

func (b *bench) run(t *testing.T, ctx context.Context, s Spec, h Host) Result {
	t.Helper()
	s = b.with(t, s)
	res, err := b.Run(ctx, s, h)
	if err != nil {
		t.Fatalf("Run: %v", err)
	}
	if left := marked(s.ID); len(left) > 0 {
		t.Errorf("processes of the run are alive after Run returned: %v", left)
	}
	return res
}

// shells runs scripts as turns of one run, with the mode "shell". It returns what each printed, and calls after once for
// each before the next one begins.
func (b *bench) shells(t *testing.T, s Spec, scripts []string, after func()) (printed []string, res Result) {
	t.Helper()
	h := &host{rests: after, on: func(e Event) {
		if e.Kind == TurnEnd {
			printed = append(printed, e.Text)
		}
	}}
	for _, script := range scripts[1:] {
		h.more = append(h.more, Message{Text: script})
	}
	s.Prompt.Text, s.Profile = scripts[0], Write
	res = b.run(t, t.Context(), s, h)
	if len(printed) != len(scripts) || h.idled != len(scripts) {
		t.Fatalf("%d of %d scripts: %+v", len(printed), len(scripts), res)
	}
	return printed, res
}

// until returns a context that is cancelled for a reason as soon as the processes of a run are there.
func (b *bench) until(t *testing.T, cause error) context.Context {
	t.Helper()
	started, err := os.OpenFile(b.alive.Path, os.O_RDWR, 0) // unlike O_RDONLY it waits for a first writer
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancelCause(t.Context())
	go func() {
		_, _ = started.Read(make([]byte, 1))
		_ = started.Close()
		stop(cause)
	}()
	t.Cleanup(func() { _ = started.Close() })
	return ctx
}

// unique makes a run's ID this process's own: processes are known by it, and the tests of another checkout may run
// beside these.
func unique(id string) string { return id + "-" + strconv.Itoa(os.Getpid()) }

func (b *bench) gone(t *testing.T) {
	t.Helper()
	b.alive.Gone(t)
}

// marked lists the processes of a run.
func marked(run string) []int { return keeper.Marked(run) }

func TestAnswer(t *testing.T) {
	t.Parallel()
	b, h := newBench(t, "talk"), &host{more: []Message{{Text: "again"}}}
	res := b.run(t, t.Context(), Spec{}, h)
	if res.Outcome != Done || res.Text != "echo: hello\n\necho: again" || res.ExitCode != 0 || res.Turns != 2 {
		t.Errorf("result = %+v", res)
	}
	var kinds []Kind
	for _, e := range h.events {
		kinds = append(kinds, e.Kind)
	}
	if diff := cmp.Diff([]Kind{Taken, Started, TurnEnd, Taken, TurnEnd}, kinds); diff != "" {
		t.Error(diff)
	}
}

// A CLI that ignores everything, and processes that left its session and its environment, are gone when Run returns.
func TestLimitEndsEverything(t *testing.T) {
	t.Parallel()
	inBoth(t, "mute-hang-escape-ignore-term-never-exit", func(t *testing.T, b *bench) {
		b.startLimit = time.Hour
		res := b.run(t, b.until(t, ErrLimit), Spec{}, &host{})
		if res.Outcome != Limit || res.Signal != "SIGKILL" || res.Resources.Swept != 2 {
			t.Errorf("outcome %s, signal %q, swept %d; want limit, SIGKILL, 2", res.Outcome, res.Signal,
				res.Resources.Swept)
		}
		b.gone(t)
	})
}

func TestLeftoversOfAGoodRunAreSwept(t *testing.T) {
	t.Parallel()
	inBoth(t, "talk-escape", func(t *testing.T, b *bench) {
		res := b.run(t, t.Context(), Spec{}, &host{})
		if res.Outcome != Done || res.Resources.Swept != 2 {
			t.Errorf("outcome %s, swept %d; want done, 2", res.Outcome, res.Resources.Swept)
		}
		b.gone(t)
	})
}

func TestEndsWithoutAnswer(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]struct {
		class  Class
		code   int
		signal string
	}{"exit-2": {ClassConfig, 2, ""}, "exit-0": {ClassNoResult, 0, ""}, "die": {ClassKilled, -1, "SIGKILL"}} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			inBoth(t, mode, func(t *testing.T, b *bench) {
				res := b.run(t, t.Context(), Spec{}, &host{})
				if res.Outcome != Failed || res.Error.Class != want.class || res.Error.User == "" ||
					res.ExitCode != want.code || res.Signal != want.signal {
					t.Errorf("result %+v, error %+v", res, res.Error)
				}
			})
		})
	}
}

func TestCauseOfTheCaller(t *testing.T) {
	t.Parallel()
	b := newBench(t, "hang")
	cause := errors.New("someone said stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	h := &host{on: func(e Event) {
		if e.Kind == Text {
			cancel(cause)
		}
	}}
	res := b.run(t, ctx, Spec{}, h)
	if res.Outcome != Stopped || res.Partial != "half an ans" || res.Text != "" {
		t.Errorf("result = %+v", res)
	}
	if !strings.Contains(res.Stderr, "hanging") {
		t.Errorf("stderr = %q", res.Stderr)
	}
}

func TestNoStart(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]struct {
		class   Class
		message string
	}{"mute": {ClassStart, "did not answer"}, "refuse": {ClassConfig, "no thanks"}} {
		b := newBench(t, mode)
		if mode == "mute" {
			b.startLimit = 100 * time.Millisecond
		}
		res := b.run(t, t.Context(), Spec{}, &host{})
		if res.Outcome != Failed || res.Error.Class != want.class || !strings.Contains(res.Error.Message, want.message) {
			t.Errorf("result = %+v", res)
		}
	}
}

// The session ended well, but the process stays, or never says that it is idle (claude-code#25629, #39700).
func TestHangsAfterTheResult(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"never-exit", "no-idle", "no-idle-never-exit-ignore-term"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, mode)
			b.exitLimit = 100 * time.Millisecond
			res := b.run(t, t.Context(), Spec{}, &host{})
			if res.Outcome != Done || !strings.Contains(res.Text, "hello") && res.Text != "said it" {
				t.Errorf("result = %+v", res)
			}
		})
	}
}

// A run that is stopped while its CLI exits says so, and not that the CLI takes too long.
func TestStoppedWhileTheCLIExits(t *testing.T) {
	t.Parallel()
	b := newBench(t, "never-exit")
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	h := &host{rests: func() { stop(errors.New("the worker leaves")) }}
	if res := b.run(t, ctx, Spec{ID: unique("exiting")}, h); res.Outcome != Done && res.Outcome != Stopped {
		t.Fatalf("result = %+v", res)
	}
	log := b.read(t, "exiting", ".log")
	if strings.Contains(log, "did not exit") || !strings.Contains(log, ": the worker leaves") {
		t.Errorf("log:\n%s", log)
	}
}

// A CLI that has not answered yet has no turn to interrupt and no session to end: it is ended at once.
func TestStoppedAtTheStart(t *testing.T) {
	t.Parallel()
	b := newBench(t, "mute", func(c *Config) { c.Grace = 1000 * time.Hour }) // a step that waits hangs the test
	res := b.run(t, b.until(t, errors.New("enough")), Spec{}, &host{})
	if res.Outcome != Stopped {
		t.Errorf("result = %+v", res)
	}
}

// No message is written after the session was told to end: it would begin another turn.
func TestNoMessageAfterTheEnd(t *testing.T) {
	t.Parallel()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	l := &liveRun{in: protocol.NewStdin(in), stream: protocol.NewStream(protocol.Config{})}
	if !l.send(Message{Text: "early"}) {
		t.Error("a message is not written")
	}
	l.hangUp()
	if l.send(Message{Text: "late"}) {
		t.Error("a message counts as written after the end")
	}
	l.in.Close()
	if text, err := io.ReadAll(out); err != nil || strings.Count(string(text), "\n") != 1 {
		t.Errorf("written: %s, %v", text, err)
	}
}

// A prompt that the CLI does not read neither outlasts the limit nor hides from it.
func TestDeafCLI(t *testing.T) {
	t.Parallel()
	b := newBench(t, "deaf-ignore-term")
	res := b.run(t, t.Context(), Spec{
		Limit: 500 * time.Millisecond, Prompt: Message{Text: strings.Repeat("x", 1<<20)},
	}, &host{})
	if res.Outcome != Limit {
		t.Errorf("result = %+v", res)
	}
	b.gone(t)
}

// An answer to an earlier message is no answer to the one that the CLI died on.
func TestDeathInALaterTurn(t *testing.T) {
	t.Parallel()
	res := newBench(t, "fatal").run(t, t.Context(), Spec{}, &host{more: []Message{{Text: "again"}}})
	if res.Outcome != Failed || res.Error.Class != ClassKilled || res.Text != "echo: hello" || res.Partial != "" {
		t.Errorf("result = %+v", res)
	}
}

func TestMessageWhileTheAgentWorks(t *testing.T) {
	t.Parallel()
	res := newBench(t, "pair").run(t, t.Context(), Spec{}, &host{next: []Message{{Text: "and this"}}})
	if res.Text != "hello+and this" {
		t.Errorf("result = %+v", res)
	}
}

func TestWithdrawnQuestion(t *testing.T) {
	t.Parallel()
	h := &host{asked: func(ctx context.Context) { <-ctx.Done() }}
	if res := newBench(t, "withdraw").run(t, t.Context(),
		Spec{Profile: Write, Rules: askAll}, h); res.Text != "never mind" {
		t.Errorf("result = %+v", res)
	}
}

func TestPermission(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		d    Decision
		want string
	}{
		// the input goes back unredacted
		"allow": {Decision{Allow: true}, `success allow  {"command":"sk-ant-test-secret"}`},
		"rewrite": {
			Decision{Allow: true, Input: json.RawMessage(`{"command":"true"}`)}, `success allow  {"command":"true"}`,
		},
		"deny":   {Decision{Reason: "not on a Friday"}, "success deny not on a Friday "},
		"silent": {Decision{}, "success deny This is not allowed here. "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &host{permit: func(ToolRequest) Decision { return c.d }}
			res := newBench(t, "ask", func(c *Config) { c.Redactor = nil }).run(t, t.Context(),
				Spec{Prompt: Message{Text: "sk-ant-test-secret"}, Profile: Write, Rules: askAll}, h)
			if res.Text != c.want {
				t.Errorf("the CLI was answered %q, want %q", res.Text, c.want)
			}
		})
	}
	t.Run("redacted input stays whole", func(t *testing.T) {
		t.Parallel()
		var asked string
		h := &host{permit: func(r ToolRequest) Decision { asked = string(r.Input); return Decision{Allow: true} }}
		newBench(t, "ask").run(t, t.Context(), Spec{
			Prompt: Message{Text: "sk-ant-test-secret"}, Profile: Write, Rules: askAll,
		}, h)
		if asked != `{"command":"sk-ant-test-secret"}` {
			t.Errorf("asked about %s", asked)
		}
	})
}

func TestUnknownRequestIsAnswered(t *testing.T) {
	t.Parallel()
	res := newBench(t, "odd").run(t, t.Context(), Spec{}, &host{})
	if want := "error  unsupported control request subtype: make_coffee "; res.Text != want {
		t.Errorf("the CLI was answered %q, want %q", res.Text, want)
	}
}

func TestOddOutputIsKeptAndHarmless(t *testing.T) {
	t.Parallel()
	b := newBench(t, "big")
	res := b.run(t, t.Context(), Spec{ID: unique("big")}, &host{})
	if res.Text != "after the big line" || res.Resources.Raw != 2 || res.Resources.Unknown["novelty"] != 1 {
		t.Errorf("text %q, resources %+v", res.Text, res.Resources)
	}
	if raw := b.read(t, "big", ".ndjson"); len(raw) < 6<<20 || !strings.Contains(raw, "\nnot json\n\x00\xff\xfe\n") {
		t.Errorf("raw log has %d bytes", len(raw))
	}
	for _, ext := range []string{".log", ".ndjson"} {
		if info, err := os.Stat(b.logPath(unique("big"), ext)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", ext, info, err)
		}
	}
}

func TestSecretsStayOut(t *testing.T) {
	t.Parallel()
	t.Run("environment and arguments", func(t *testing.T) {
		t.Parallel()
		getenv := func(name string) string {
			return map[string]string{
				"PATH": "/bin", "SLACK_BOT_TOKEN": "xoxb-1234567890", "ANTHROPIC_API_KEY": "sk-ant-inherited",
			}[name]
		}
		b := newBench(t, "env", func(c *Config) {
			c.Getenv, c.Redactor, c.Credential = getenv, nil, Credential{APIKey: "the-model-key"}
		})
		env := map[string]string{
			"GOFLAGS": "-mod=mod", "TZ": "Asia/Tokyo", "PATH": "/evil", "HOME": "/evil", "ANTHROPIC_BASE_URL": "/evil",
		}
		res := b.run(t, t.Context(), Spec{
			Prompt: Message{Text: "the prompt"}, System: "the context", Environment: Environment{Env: env},
		}, &host{})
		for _, secret := range []string{
			"xoxb", "sk-ant", "the-model-key", "THE-MODEL-KEY", "the prompt", "the context", "/evil",
		} {
			if strings.Contains(res.Text, secret) {
				t.Errorf("%q is in the CLI's arguments or environment:\n%s", secret, res.Text)
			}
		}
		for _, want := range []string{
			"ERRAND_RUN=", "CLAUDE_CONFIG_DIR=", "PATH=/bin", "GOFLAGS=-mod=mod", "TZ=Asia/Tokyo",
			"CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR=3", "ANTHROPIC_BASE_URL=http://127.0.0.1:", "KEY SK-ANT-RUN-",
		} {
			if !strings.Contains(res.Text, want) {
				t.Errorf("%q is missing:\n%s", want, res.Text)
			}
		}
	})
	t.Run("logs and events", func(t *testing.T) {
		t.Parallel()
		b, h := newBench(t, "talk"), &host{}
		res := b.run(t, t.Context(), Spec{ID: unique("hush"), Prompt: Message{Text: "say sk-ant-test-secret"}}, h)
		events, _ := json.Marshal(h.events)
		for _, s := range []string{
			res.Text, string(events), b.read(t, "hush", ".log"), b.read(t, "hush", ".ndjson"),
		} {
			if s == "" || strings.Contains(s, "sk-ant") {
				t.Errorf("empty, or with the secret: %s", s)
			}
		}
	})
}

func TestNothingRuns(t *testing.T) {
	t.Parallel()
	b := newBench(t, "talk")
	file := filepath.Join(b.dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(b.dir, "broken") // executable, but not a program
	if err := os.WriteFile(broken, []byte("\x7fELF"), 0o700); err != nil {
		t.Fatal(err)
	}
	ok := Spec{ID: "x", Dir: b.dir, Prompt: Message{Text: "x"}, Profile: Read}
	for name, c := range map[string]struct {
		change func(*Spec, *Config)
		want   Class
	}{
		"id":       {func(s *Spec, _ *Config) { s.ID = "../x" }, ClassInternal},
		"profile":  {func(s *Spec, _ *Config) { s.Profile = "" }, ClassInternal},
		"rule":     {func(s *Spec, _ *Config) { s.Rules = []Rule{{Tool: "Bash"}} }, ClassConfig},
		"relative": {func(s *Spec, _ *Config) { s.Dir = "." }, ClassWorkspace},
		"missing":  {func(s *Spec, _ *Config) { s.Dir = b.dir + "/no" }, ClassWorkspace},
		"file":     {func(s *Spec, _ *Config) { s.Dir = file }, ClassWorkspace},
		"bad CLI":  {func(_ *Spec, c *Config) { c.CLI = file }, ClassCLIMissing},
		"broken":   {func(_ *Spec, c *Config) { c.CLI = broken }, ClassCLIMissing},
		"gone CLI": {func(_ *Spec, c *Config) { c.CLI = file + "-gone" }, ClassCLIMissing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, cfg := ok, b.cfg
			c.change(&s, &cfg)
			r, err := New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			_, err = r.Run(t.Context(), s, &host{})
			if e, ok := errors.AsType[*Error](err); !ok || e.Class != c.want || e.User == "" {
				t.Errorf("error = %v, want class %s", err, c.want)
			}
		})
	}
}

// put writes files below a directory, by their paths.
func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700),
			os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

// said joins the texts of the events of a kind.
func (h *host) said(kind Kind) (text string) {
	for _, e := range h.events {
		if e.Kind == kind {
			text += e.Text
		}
	}
	return text
}

// read returns a log of a run; ext is .log or .ndjson.
func (r *Runner) read(t *testing.T, id, ext string) string {
	t.Helper()
	log, err := os.ReadFile(r.logPath(unique(id), ext))
	if err != nil {
		t.Fatal(err)
	}
	return string(log)
}

// logPath returns the path of a log of a run; ext is .log or .ndjson.
func (r *Runner) logPath(id, ext string) string { return filepath.Join(r.cfg.LogDir, id+ext) }
