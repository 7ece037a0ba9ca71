package agent

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent/internal/agenttest"
	"github.com/errand-fleet/errand/agent/internal/protocol"
	"github.com/errand-fleet/errand/internal/await"
	"golang.org/x/sys/unix"
)

// Process tree cases that need a whole run. docs/invariants.md has the table of all of them.

// Whatever the CLI does on its way, the run ends by itself, with the answer, and nothing is left.
func TestSuperviseAwkwardRuns(t *testing.T) {
	t.Parallel()
	for mode, c := range map[string]struct {
		text string
		more func(*testing.T, *bench, Result)
	}{
		"leak":      {"leaked", swept(1)},
		"neighbour": {"spawned", swept(1)},
		"exit-3": {"said before", func(t *testing.T, _ *bench, r Result) {
			if r.ExitCode != 3 {
				t.Errorf("exit %d", r.ExitCode)
			}
		}},
		"torn": {"torn", func(t *testing.T, b *bench, r Result) {
			for _, s := range []string{b.read(t, "torn", ".log"), b.read(t, "torn", ".ndjson"), r.Stderr} {
				if !strings.Contains(s, "key [redacted].") || strings.Contains(s, "sk-ant") {
					t.Errorf("%q", s)
				}
			}
		}},
		"flood": {"flooded", func(t *testing.T, _ *bench, r Result) {
			if r.Resources.Lines != 20_004 {
				t.Errorf("%d lines", r.Resources.Lines)
			}
		}},
		"stderr-flood": {"flooded", func(t *testing.T, _ *bench, r Result) {
			if !strings.HasPrefix(r.Stderr, "[only the last 100 lines]") {
				t.Errorf("stderr of %d bytes", len(r.Stderr))
			}
		}},
		"huge": {"huge", func(t *testing.T, b *bench, r Result) {
			info, err := os.Stat(b.logPath(unique("huge"), ".ndjson"))
			if err != nil || info.Size() < protocol.MaxLine || r.Resources.MaxRSS == 0 {
				t.Errorf("log %v, %v; %+v", info, err, r.Resources)
			}
		}},
		"no-cwd":  {"homeless", nil},
		"no-dirs": {"homeless", nil},
		"identity": {
			"adj 500 leads its group true, session of its keeper true, terminal 0",
			func(t *testing.T, _ *bench, _ Result) {
				if adj, err := os.ReadFile("/proc/self/oom_score_adj"); err != nil || string(adj) == "500\n" {
					t.Errorf("the worker's own: %s, %v", adj, err)
				}
			},
		},
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "hostile "+mode)
			dir := t.TempDir()
			res := b.run(t, t.Context(), Spec{ID: unique(mode), Dir: dir}, &host{})
			if res.Outcome != Done || res.Text != c.text {
				t.Fatalf("outcome %s, %v, text %q, exit %d, stderr %q", res.Outcome, res.Error, res.Text,
					res.ExitCode, res.Stderr)
			}
			if c.more != nil {
				c.more(t, b, res)
			}
			b.gone(t)
		})
	}
}

func swept(n int) func(*testing.T, *bench, Result) {
	return func(t *testing.T, _ *bench, r Result) {
		t.Helper()
		if r.Resources.Swept != n {
			t.Errorf("swept %d, want %d", r.Resources.Swept, n)
		}
	}
}

func TestSuperviseExitInATurn(t *testing.T) {
	t.Parallel()
	res := newBench(t, "hostile mid-turn").run(t, t.Context(), Spec{}, &host{})
	if res.Outcome != Failed || res.Error.Class != ClassNoResult || res.ExitCode != 0 {
		t.Errorf("result = %+v", res)
	}
}

// A prompt is not an argument, so its length is only the model's concern.
func TestSuperviseLongPrompt(t *testing.T) {
	t.Parallel()
	const size = 5 << 20
	res := newBench(t, "hostile length").run(t, t.Context(),
		Spec{Prompt: Message{Text: strings.Repeat("x", size)}}, &host{})
	if res.Text != strconv.Itoa(size) {
		t.Errorf("the CLI got %s bytes, %v", res.Text, res.Error)
	}
}

// The CLI has its three standard files, and the credential's if there is one, but none that happens to be open in
// the worker: here one
// that is not marked close-on-exec, as a parent of the worker may hand it over.
func TestSuperviseOpenFiles(t *testing.T) {
	t.Parallel()
	null, err := unix.Open("/dev/null", unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(null)
	for want, credential := range map[string]Credential{"0 1 2": {}, "0 1 2 3": {APIKey: "sk-ant-test-secret"}} {
		b := newBench(t, "hostile fds", func(c *Config) { c.Credential = credential })
		if res := b.run(t, t.Context(), Spec{}, &host{}); res.Text != want {
			t.Errorf("open: %q, want %q", res.Text, want)
		}
	}
}

// A CLI that has left its process group does not escape by it.
func TestSuperviseOtherGroup(t *testing.T) {
	t.Parallel()
	b := newBench(t, "hostile regroup")
	ctx, stop := context.WithCancelCause(t.Context())
	res := b.run(t, ctx, Spec{}, &host{on: func(e Event) {
		if e.Kind == Text {
			stop(errors.New("enough"))
		}
	}})
	if res.Outcome != Stopped || res.Signal != "SIGKILL" {
		t.Errorf("outcome %s, exit %d %q", res.Outcome, res.ExitCode, res.Signal)
	}
	b.gone(t)
}

// Nothing is started for a caller who does not want it any more, and nothing of what was there is lost.
func TestSuperviseCancelBeforeStart(t *testing.T) {
	t.Parallel()
	b := newBench(t, "hang")
	ctx, stop := context.WithCancelCause(t.Context())
	stop(errors.New("changed my mind"))
	session := Session{ID: "00000000-0000-4000-8000-000000000001", Data: []byte("{}\n"), CostUSD: 1}
	res := b.run(t, ctx, Spec{ID: unique("never"), Resume: &session}, &host{})
	if res.Outcome != Stopped || res.ExitCode != -1 || res.Started.IsZero() || res.Session.ID != session.ID ||
		res.Session.CostUSD != 1 || len(res.Session.Data) == 0 {
		t.Errorf("result = %+v", res)
	}
	if _, err := os.Stat(b.logPath(unique("never"), ".log")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a log: %v", err)
	}
}

// The first cause wins over those that come while the run is being stopped, and one that comes when all is over
// changes nothing.
func TestSuperviseCancelTwice(t *testing.T) {
	t.Parallel()
	b := newBench(t, "hostile stubborn")
	b.cfg.Grace = 3 * time.Second
	ctx, stop := context.WithCancelCause(t.Context())
	h := &host{on: func(e Event) {
		if e.Kind == Text {
			stop(errors.New("first"))
			stop(errors.New("second"))
		}
	}}
	res := b.run(t, ctx, Spec{Limit: 2 * time.Second, IdleLimit: time.Second}, h) // both end within the grace
	stop(errors.New("third"))
	if res.Outcome != Stopped || res.Signal != "SIGKILL" || context.Cause(ctx).Error() != "first" {
		t.Errorf("outcome %s, %q, cause %v", res.Outcome, res.Signal, context.Cause(ctx))
	}
	b.gone(t)
}

// A tool is a process of the same user, so it can stop the keeper as well. Then the keeper is given up, and its run
// is ended without it.
func TestSuperviseStoppedKeeper(t *testing.T) {
	t.Parallel()
	b, id := newBench(t, "hang-marked"), unique("stopped-keeper")
	b.keeperLimit = 100 * time.Millisecond
	ctx, stop := context.WithCancelCause(t.Context())
	res := b.run(t, ctx, Spec{ID: id}, &host{on: onFirstText(func() {
		_ = syscall.Kill(parent(t, marked(id)[0]), syscall.SIGSTOP)
		stop(errors.New("enough"))
	})})
	if res.Outcome != Stopped || res.Resources.Swept == 0 {
		t.Errorf("outcome %s, %v, swept %d", res.Outcome, res.Error, res.Resources.Swept)
	}
	b.gone(t)
}

// A host that blocks holds up the reader, and so Run, against its promise. It does not keep the CLI alive.
func TestSuperviseBlockedHost(t *testing.T) {
	t.Parallel()
	b := newBench(t, "hostile stubborn")
	ctx, stop := context.WithCancelCause(t.Context())
	h := &host{on: func(e Event) {
		if e.Kind == Text {
			stop(errors.New("enough"))
			b.gone(t) // returns when no process is left
		}
	}}
	if res := b.run(t, ctx, Spec{}, h); res.Outcome != Stopped {
		t.Errorf("result = %+v", res)
	}
}

func TestSuperviseLogsRemoved(t *testing.T) {
	t.Parallel()
	b := newBench(t, "talk")
	h := &host{more: []Message{{Text: "again"}}, on: func(e Event) {
		if e.Kind == Started {
			_ = os.RemoveAll(b.cfg.LogDir)
		}
	}}
	if res := b.run(t, t.Context(), Spec{}, h); res.Outcome != Done || res.Text != "echo: hello\n\necho: again" {
		t.Errorf("result = %+v", res)
	}
}

// A log that cannot be opened, as on a full disk, is no reason to give the task up: it may start on another worker.
func TestSuperviseNoRoomForALog(t *testing.T) {
	t.Parallel()
	b := newBench(t, "talk")
	if err := os.WriteFile(b.cfg.LogDir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := b.Run(t.Context(), b.with(t, Spec{}), &host{})
	if e, ok := errors.AsType[*Error](err); !ok || e.Class != ClassInternal {
		t.Errorf("error = %v", err)
	}
}

// A CLI that is being written while it is to be started, as npm does at an upgrade, may be there a moment later.
func TestSuperviseBusyCLI(t *testing.T) {
	t.Parallel()
	b := newBench(t, "talk")
	b.cfg.CLI = b.dir + "/claude"
	f, err := os.OpenFile(b.cfg.CLI, os.O_CREATE|os.O_WRONLY, 0o700)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("#!/bin/true\n"); err != nil {
		t.Fatal(err)
	}
	_, err = b.Run(t.Context(), b.with(t, Spec{}), &host{})
	if e, ok := errors.AsType[*Error](err); !ok || e.Class != ClassStart || e.Class.Retry() != RetrySoon {
		t.Errorf("error = %v", err)
	}
}

// Silence is measured from the last sign of work, longer while a tool runs, and not at all without a limit.
func TestSuperviseSilence(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, c := range map[string]struct {
		limit, since time.Duration
		tool, over   bool // a tool runs; the turn has ended
		due, silent  bool
	}{
		"no limit":         {since: 24 * time.Hour},
		"within":           {limit: time.Minute, since: 30 * time.Second},
		"beyond":           {limit: time.Minute, since: 2 * time.Minute, due: true, silent: true},
		"a tool runs":      {limit: time.Minute, since: 2 * time.Minute, tool: true},
		"a tool hangs":     {limit: time.Minute, since: 5 * time.Minute, tool: true, due: true, silent: true},
		"the turn is over": {limit: time.Hour, since: time.Minute, over: true, due: true},
	} {
		clock := protocol.Clock{Active: now.Add(-c.since), Turn: !c.over, Tool: c.tool}
		if c.over {
			clock.Ended = clock.Active
		}
		next, what := watchdog{exitLimit: 20 * time.Second, idleLimit: c.limit}.next(now, clock, time.Time{}, false)
		if due := !next.After(now); due != c.due || due && (what == noWork) != c.silent {
			t.Errorf("%s: due %t, for %d", name, due, what)
		}
	}
}

// The usage of a run should include all its processes: those their parents waited for, and orphans. Each burns until
// it has itself counted
// enough.
func TestSuperviseResources(t *testing.T) {
	t.Parallel()
	const burn, size = 100 * time.Millisecond, 64 << 20
	b := newBench(t, "hostile burn", func(c *Config) {
		c.Env["AGENT_TEST_BURN"], c.Env["AGENT_TEST_MEMORY"] = burn.String(), strconv.Itoa(size)
	})
	res := b.run(t, t.Context(), Spec{}, &host{})
	if r := res.Resources; res.Text != "burnt" || r.CPU < 3*burn || r.MaxRSS < size {
		t.Errorf("%v: CPU %v of at least %v, largest process %d of at least %d", res.Error, r.CPU, 3*burn,
			r.MaxRSS, size)
	}
}

// A worker whose file was replaced by an upgrade goes on with the program that it is.
func TestSuperviseReplacedBinary(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	program := filepath.Join(b.dir, "worker")
	copyProgram(t, self, program)
	worker := exec.Command(program)
	worker.Env = append(os.Environ(), "AGENT_TEST_MODE=replaced", "AGENT_TEST_ID="+unique("replaced"),
		"AGENT_TEST_DIR="+b.dir, "AGENT_TEST_CLI="+fake, "TMPDIR="+agenttest.ShortTemp(t))
	out, err := worker.CombinedOutput()
	if err != nil || string(out) != "done echo: hello" {
		t.Errorf("%s, %v", out, err)
	}
}

// A program that has forgotten KeeperMain is told so, and is not started again and again.
func TestForgottenKeeperMain(t *testing.T) {
	t.Parallel()
	program := filepath.Join(agenttest.ShortTemp(t), "forgetful")
	copyProgram(t, self, program)
	ctx := await.Context(t)
	out, err := exec.CommandContext(ctx, program).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "this program has not called agent.KeeperMain: call agent.KeeperMain") {
		t.Errorf("%s, %v", out, err)
	}
	if starts, err := os.ReadFile(program + ".starts"); string(starts) != "x" {
		t.Errorf("started %d times, %v", len(starts), err)
	}
}

// copyProgram makes a copy of a program. No other test may fork meanwhile: its child would have the copy open for
// writing for a moment, and a file that is open for writing cannot be executed (golang/go#22315).
func copyProgram(t *testing.T, program, path string) {
	t.Helper()
	content, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	makeProgram(t, path, content)
}
