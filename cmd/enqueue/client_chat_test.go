package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
)

func TestChatPrintsTheTask(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	code, out, errs := f.run("chat", "-repo", "acme/app", "-thread", "t-1", "-agent", "strategist", "-model", "opus", "Fix", "the", "test")
	if code != 0 || errs != "" {
		t.Fatalf("exit %d: %s", code, errs)
	}
	got := f.Status(strings.TrimSuffix(out, "\n"))
	want := tasks.Task{
		Thread: "chat/t-1", Repo: "acme/app", Prompt: "Fix the test", Options: tasks.Options{Agent: "strategist", Model: "opus"},
		ID: got.Task.ID, Source: "chat", Kind: "chat", Class: tasks.Interactive, Profile: agent.Write, Actor: "console",
	}
	if diff := cmp.Diff(want, got.Task); diff != "" {
		t.Error(diff)
	}
	if got.State != "waiting" || got.Cancel != "" {
		t.Errorf("leaving made it %s, cancelled by %q", got.State, got.Cancel)
	}
}

func TestChatInADirectory(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(here, f.dirs)
	if err != nil {
		t.Fatal(err)
	}
	code, out, errs := f.run("chat", "-dir", relative, "Look")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	want, err := filepath.EvalSymlinks(f.dirs)
	if got := f.Status(strings.TrimSpace(out)).Task.Dir; err != nil || got != want {
		t.Errorf("it works in %q, not %q", got, want)
	}
	if code, _, errs := f.run("chat", "-dir", "/etc", "Look"); code != 1 || !strings.Contains(errs, "Invalid path: ") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

func TestChatFollows(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	r := f.start("chat", "-follow", "-thread", "sums", "6 × 7?")
	first := strings.Fields(r.line(r.stderr))
	id := strings.TrimSuffix(first[1], ",")
	if diff := cmp.Diff([]string{"task", id + ",", "thread", "sums"}, first); diff != "" {
		t.Error(diff)
	}
	c := f.Claim(id)
	f.Append(c, agent.Event{Kind: agent.Text, Text: "Let me see.\n"})
	if got := r.line(r.stdout); got != "Let me see.\n" {
		t.Errorf("at first it says %q", got)
	}
	f.Append(c,
		agent.Event{Kind: agent.Text, Text: "Hm"},
		agent.Event{Kind: agent.ToolUse, Tool: "Bash", Text: "Running bc \x1b[2J"},
		agent.Event{Kind: agent.Text, Text: "It is "}, agent.Event{Kind: agent.Text, Text: "42.\x1b]0;x\x07"},
	)
	f.End(c, tasks.Ending{Kind: tasks.Answered, Result: agent.Result{Text: "It is 42.", CostUSD: 0.25}})
	code, out, errs := r.rest()
	// Only the answer on stdout, with no line of its own broken by what the tools did, and nothing that moves the cursor.
	want := []any{0, "Hm\nIt is 42.]0;x\n", "· Running bc [2J\ndone, $0.25\n"}
	if diff := cmp.Diff(want, []any{code, out, errs}); diff != "" {
		t.Error(diff)
	}
}

func TestChatEndings(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ending tasks.Ending
		want   []any // exit code, stdout, stderr
	}{
		"nothing streamed": {
			tasks.Ending{Kind: tasks.Answered, Result: agent.Result{Text: "42"}}, []any{0, "42\n", "done, $0.00\n"},
		},
		"failed": {
			tasks.Ending{Kind: tasks.Failed, Reason: "The model refuses the credential."}, []any{1, "", "The model refuses the credential.\n"},
		},
		"cancelled": {
			tasks.Ending{Kind: tasks.Cancelled, By: "ann", Result: agent.Result{Partial: "So far"}},
			[]any{1, "So far\n", "This was cancelled by ann. Ask again to go on.\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFrontDoor(t)
			r := f.start("chat", "-follow", "Hello")
			id := strings.TrimSuffix(strings.Fields(r.line(r.stderr))[1], ",")
			f.End(f.Claim(id), test.ending)
			code, out, errs := r.rest()
			if diff := cmp.Diff(test.want, []any{code, out, errs}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Whoever stops listening, and whichever end it is, learns how to come back.
func TestChatThatIsCutOff(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]func(*frontDoor, *running){
		"by the server":  func(f *frontDoor, _ *running) { f.stop() },
		"by the network": func(f *frontDoor, _ *running) { f.server.CloseClientConnections() },
		"by the person":  func(_ *frontDoor, r *running) { r.interrupt() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFrontDoor(t)
			r := f.start("chat", "-follow", "Hello")
			id := strings.TrimSuffix(strings.Fields(r.line(r.stderr))[1], ",")
			cut(f, r)
			code, _, errs := r.rest()
			if code != 1 || !strings.Contains(errs, "the task goes on") || !strings.Contains(errs, id) {
				t.Errorf("exit %d: %s", code, errs)
			}
			if got := f.Status(id); got.Cancel != "" {
				t.Errorf("cancelled by %q", got.Cancel)
			}
		})
	}
}
