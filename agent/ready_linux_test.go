package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/modelfake"
)

// readiness is a conversation whose next CLI can be kept ready.
type readiness struct {
	*testing.T
	model *modelfake.Server
	r     *Runner
	next  Spec
}

// run runs the next message of the conversation under a name.
func (c *readiness) run(name string, s Spec) Result {
	c.Helper()
	s.ID = c.id(name)
	return runCLI(c.T, c.r, s, &host{})
}

func (c *readiness) id(name string) string {
	return strings.ToLower(strings.ReplaceAll(c.Name(), "/", "-") + "-" + name)
}

func newReadiness(t *testing.T, change ...func(*Config)) *readiness {
	t.Helper()
	model := newModel(t)
	model.Answer("", modelfake.Turn{Text: "You said {{prompt}}; that makes {{turns}}."})
	c := &readiness{T: t, model: model, r: newCLI(t, model, change...)}
	c.next = Spec{
		Dir: t.TempDir(), Files: t.TempDir(), Prompt: Message{Text: "blue"}, System: "Speak of colours.",
		Profile: Write,
	}
	first := c.run("first", c.next)
	if first.Outcome != Done {
		t.Fatalf("first = %+v", first)
	}
	c.next.Prompt, c.next.System, c.next.Resume = Message{Text: "red"}, "Speak of shapes.", &first.Session
	return c
}

// ready keeps a CLI ready for the next run.
func (c *readiness) ready() *Ready {
	c.Helper()
	y, err := c.r.Ready(c.Context(), c.next)
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(y.End)
	return y
}

// log returns the log of a run.
func (c *readiness) log(name string) string {
	c.Helper()
	b, err := os.ReadFile(c.r.logPath(unique(c.id(name)), ".log"))
	if err != nil {
		c.Fatal(err)
	}
	return string(b)
}

// A CLI that was kept ready gives the same answer, in the same conversation, as one that is started for the run: with
// the context and the tools of the run. It asks the model nothing before, and serves one run only.
func TestReady(t *testing.T) {
	t.Parallel()
	for _, sandbox := range []Sandbox{SandboxNone, SandboxBwrap} {
		t.Run(string(sandbox), func(t *testing.T) {
			t.Parallel()
			c := newReadiness(t, func(cfg *Config) { cfg.Sandbox = sandbox })
			want := c.run("without", c.next)
			asked := len(c.model.Requests())

			y := c.ready()
			id := y.cli.id
			c.next.Ready = y
			got := c.run("with", c.next)
			if !got.Ready || want.Ready || got.Outcome != Done || got.Text != want.Text ||
				got.Session.ID != want.Session.ID {
				t.Errorf("with %+v, without %+v\n%s", got, want, c.log("with"))
			}
			if left := marked(id); len(left) > 0 {
				t.Errorf("alive after Run: %v", left)
			}
			calls := c.model.Requests()
			if n := len(calls) - asked; n != 1 || !strings.Contains(calls[asked].System, "Speak of shapes.") {
				t.Errorf("%d calls, or without the context", n)
			}
			if got.API.Calls != 1 || got.CostUSD <= 0 {
				t.Errorf("the run's traffic is %+v", got.API)
			}
			if res := c.run("again", c.next); res.Ready || res.Text != want.Text {
				t.Errorf("again: %+v", res)
			}
		})
	}
}

// A run that would start another CLI does not take the one that was kept ready, which is ended.
func TestReadyIsForOneShape(t *testing.T) {
	t.Parallel()
	c := newReadiness(t)
	other := c.run("other", Spec{
		Dir: c.next.Dir, Prompt: Message{Text: "green"}, Profile: Write, Resume: c.next.Resume,
	})
	fits := c.next
	for name, change := range map[string]func(*Spec){
		"model":   func(s *Spec) { s.Model = "haiku" },
		"effort":  func(s *Spec) { s.Effort = "low" },
		"profile": func(s *Spec) { s.Profile = Read },
		"trust":   func(s *Spec) { s.TrustedConfig = true },
		"tools": func(s *Spec) {
			s.Tools = []Tool{NewTool("t", "d", func(context.Context, struct{}) (string, error) { return "", nil })}
		},
		"directory": func(s *Spec) { s.Dir = t.TempDir() },
		"files":     func(s *Spec) { s.Files = t.TempDir() },
		"session":   func(s *Spec) { s.Resume = &other.Session },
		"new":       func(s *Spec) { s.Resume = nil },
	} {
		t.Run(name, func(t *testing.T) {
			y := c.ready()
			id := y.cli.id
			s := fits
			s.Ready = y
			change(&s)
			res := c.run(name, s)
			if res.Ready || res.Outcome != Done || !strings.Contains(c.log(name), "kept ready is not used") {
				t.Errorf("%+v\n%s", res, c.log(name))
			}
			if left := marked(id); len(left) > 0 {
				t.Errorf("alive: %v", left)
			}
		})
	}
}

// A run for a person with another credential does not take a CLI that was kept ready for someone else.
func TestReadyIsForItsCredentials(t *testing.T) {
	t.Parallel()
	c := newReadiness(t, func(cfg *Config) {
		cfg.Credential = Credential{}
		cfg.Credentials = []ModelCredential{
			{Name: "ann", APIKey: "sk-ant-ann-1", People: []string{"ann"}}, {Name: "all", APIKey: "sk-ant-all-2"},
		}
	})
	c.next.Person = "ann"
	for person, fits := range map[string]bool{"ann": true, "bob": false} {
		s := c.next
		s.Ready, s.Person = c.ready(), person
		if res := c.run(person, s); res.Ready != fits || res.Outcome != Done ||
			!fits && !strings.Contains(c.log(person), "it may use other credentials for the model") {
			t.Errorf("%s: %+v\n%s", person, res, c.log(person))
		}
	}
}

// A CLI is ready for any maximum cost, such as what is left of a day's budget, and its run ends at its own.
func TestReadyHasTheMaximumOfItsRun(t *testing.T) {
	t.Parallel()
	c := newReadiness(t)
	spend := bash("true")
	spend.Usage = modelfake.Usage{Output: 60_000} // $1.20
	c.model.Answer("spend", spend, modelfake.Turn{Text: "Done."})
	c.next.MaxUSD, c.next.Prompt = 9, Message{Text: "spend"}
	for usd, class := range map[float64]Class{3: "", 1: ClassBudget} {
		s, name := c.next, fmt.Sprint(usd)
		s.Ready, s.MaxUSD = c.ready(), usd
		res := c.run(name, s)
		if !res.Ready || (res.Error == nil) != (class == "") || res.Error != nil && res.Error.Class != class {
			t.Errorf("$%s: %+v, %v\n%s", name, res, res.Error, c.log(name))
		}
	}
}

// A run does not get around a cap because its CLI was kept ready before the cap was reached.
func TestReadyIsCapped(t *testing.T) {
	t.Parallel()
	c := newReadiness(t, func(cfg *Config) {
		cfg.Credential = Credential{}
		cfg.Credentials = []ModelCredential{
			{Name: "a", APIKey: "sk-ant-a-1", DailyCap: 1}, {Name: "b", APIKey: "sk-ant-b-2", DailyCap: 1},
		}
	})
	asked, until := len(c.model.Requests()), time.Now().Add(time.Hour)
	c.next.Ready = c.ready()
	c.r.Learn(map[string]CredentialState{"a": {CappedUntil: until}})
	if res := c.run("one", c.next); res.Ready || res.Outcome != Done || res.API.Credential != "b" {
		t.Errorf("%+v\n%s", res, c.log("one"))
	}
	c.next.Ready = c.ready()
	c.r.Learn(map[string]CredentialState{"b": {CappedUntil: until}})
	c.next.ID = unique(c.id("both"))
	_, err := c.r.Run(t.Context(), c.next, &host{})
	if e, ok := errors.AsType[*Error](err); !ok || e.Class != ClassBudget || len(c.model.Requests()) != asked+1 {
		t.Errorf("both capped: %v", err)
	}
}

// A CLI that dies while it is kept ready costs the run only a start.
func TestReadyDies(t *testing.T) {
	t.Parallel()
	c := newReadiness(t)
	y := c.ready()
	for _, pid := range marked(y.cli.id) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	<-y.Done()
	c.next.Ready = y
	if res := c.run("died", c.next); res.Ready || res.Text != "You said red; that makes 2." || res.Fresh {
		t.Errorf("%+v\n%s", res, c.log("died"))
	}
}

// So does one that dies when its run talks to it.
func TestReadyIsBroken(t *testing.T) {
	t.Parallel()
	b := newBench(t, "stale", func(c *Config) { c.Credential = Credential{APIKey: "sk-ant-test-123456"} })
	spec := Spec{Dir: b.dir, Profile: Read, Resume: &Session{
		ID: "8a4f6b0e-58d1-4f0c-9d3b-1f4f0e3f9a11", Data: []byte("{}\n"),
	}}
	var err error
	if spec.Ready, err = b.Ready(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if res := b.run(t, t.Context(), spec, &host{}); res.Ready || res.Text != "echo: hello" || res.Fresh {
		t.Errorf("%+v", res)
	}
}

// While a CLI is kept ready, nothing is executed that its directories contain, and its token opens nothing.
func TestReadyExecutesNothing(t *testing.T) {
	t.Parallel()
	c := newReadiness(t)
	evidence := filepath.Join(t.TempDir(), "executed")
	command := "touch " + evidence
	for _, dir := range []string{c.next.Dir, c.next.Files} {
		for name, text := range map[string]string{
			".claude/settings.json": `{"apiKeyHelper": "` + command +
				`", "hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "` + command + `"}]}]}}`,
			".mcp.json":   `{"mcpServers": {"m": {"command": "/bin/sh", "args": ["-c", "` + command + `"]}}}`,
			"bunfig.toml": `preload = ["./preload.js"]`,
			"preload.js":  `require("fs").writeFileSync("` + evidence + `", "")`,
			".env":        "NODE_OPTIONS=--require=./preload.js\nBUN_OPTIONS=--preload=./preload.js\n",
		} {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	y := c.ready()
	way := c.r.model.Access(y.cli.gate)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, way.BaseURL+"/v1/messages",
		strings.NewReader(`{"model":"haiku"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", way.Credential.APIKey)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusForbidden {
		t.Errorf("the gateway answers %s", resp.Status)
	}
	c.next.Ready = y
	if res := c.run("planted", c.next); !res.Ready || res.Outcome != Done {
		t.Errorf("%+v\n%s", res, c.log("planted"))
	}
	if _, err := os.Stat(evidence); err == nil {
		t.Error("something was executed")
	}
	if err := os.Mkdir(filepath.Join(c.next.Dir, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]Spec{
		"a repository": c.next, "configuration": {
			Dir: t.TempDir(), Profile: Write, TrustedConfig: true, Resume: c.next.Resume,
		},
		"a first message": {Dir: t.TempDir(), Profile: Read},
	} {
		if y, err := c.r.Ready(t.Context(), s); !errors.Is(err, ErrNotReady) {
			t.Errorf("%s: %v, %v", name, y, err)
		}
	}
}
