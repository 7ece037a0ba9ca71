package main

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/google/go-cmp/cmp"
)

// task is the ID in the first line that a chat prints.
func (r *running) task() string {
	r.Helper()
	first := strings.Fields(r.line(r.stderr))
	if len(first) < 4 || first[0] != "task" || first[2] != "thread" {
		r.Fatalf("at first it says %q", first)
	}
	return strings.TrimSuffix(first[1], ",")
}

func TestChatFollows(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	r := f.start("chat", "--follow", "--thread", "sums", "6 × 7?")
	c := f.Claim(f.whole(r.task()))
	f.Append(c, agent.Event{Kind: agent.Text, Text: "Let me see.\n"})
	if got := r.line(r.stdout); got != "Let me see.\n" {
		t.Errorf("at first got %q", got)
	}
	f.Append(c,
		agent.Event{Kind: agent.Text, Text: "Hm"}, agent.Event{Kind: agent.Thinking, Text: "why"},
		agent.Event{Kind: agent.ToolUse, ToolID: "t1", Tool: "Bash", Text: "Running bc \x1b[2J\nand more"},
		agent.Event{Kind: agent.ToolResult, ToolID: "t1", Text: "out\x1b[2J"},
		agent.Event{Kind: agent.ToolUse, ToolID: "t2", Parent: "t0", Text: "Reading x"},
		agent.Event{Kind: agent.ToolResult, ToolID: "t2", Text: "no such\r\x1b]0;x\afile", Error: true},
		agent.Event{Kind: agent.Text, Parent: "t0", Text: "for the agent alone"},
		agent.Event{Kind: tasks.Said, Text: "On \u202eit"},
		agent.Event{Kind: agent.Text, Text: "\n\n\nIt is "},
		agent.Event{Kind: agent.Text, Text: "42.\x1b]0;x\x07\u009b2J"},
	)
	f.End(c, tasks.Ending{Kind: tasks.Answered, Result: agent.Result{
		Text: "It is 42.", CostUSD: 0.25, Duration: 72 * time.Second, Turns: 2,
	}})
	code, out, errs := r.rest()
	// Only the answer is on stdout, and nothing anywhere that moves the cursor.
	want := []any{
		0, "Hm\n\nIt is 42.\\x9b2J\n",
		"· Running bc and more\n  · Reading x\n✗ no such\\x0dfile\n» On \\u202eit\nanswered · 1m12s · 2 turns · $0.25\n",
	}
	if diff := cmp.Diff(want, []any{code, out, errs}); diff != "" {
		t.Error(diff)
	}
}

// How a task has ended is in the exit code, for scripts, and in words, with what there is of an answer.
func TestChatEndings(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ending tasks.Ending
		want   []any // exit code, stdout, stderr
	}{
		"nothing streamed": {
			tasks.Ending{Kind: tasks.Answered, Result: agent.Result{Text: "4\x1b[1m2"}}, []any{0, "42\n", "answered\n"},
		},
		"published": {
			tasks.Ending{
				Kind: tasks.Answered, Result: agent.Result{Text: "Done."},
				Published: &tasks.Published{Problem: "No branch could be pushed."},
			},
			[]any{0, "Done.\n", "answered\nNo branch could be pushed.\n"},
		},
		"failed": {
			tasks.Ending{Kind: tasks.Failed, Reason: "The model refuses the credential."},
			[]any{3, "", "failed\nThe model refuses the credential.\n"},
		},
		"timed out": {
			tasks.Ending{Kind: tasks.TimedOut, Limit: "2h"},
			[]any{
				4, "",
				"timed_out\nStopped at the time limit of 2h. Ask for something smaller, or ask again to continue from here.\n",
			},
		},
		"cancelled": {
			tasks.Ending{Kind: tasks.Cancelled, By: "ann", Result: agent.Result{Partial: "So far"}},
			[]any{5, "So far\n", "cancelled\nStopped by ann. Ask again to continue.\n"},
		},
		"refused": {
			tasks.Ending{Kind: tasks.Refused, Reason: "The budget is spent."},
			[]any{6, "", "refused\nThe budget is spent.\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFrontDoor(t)
			r := f.start("chat", "--follow", "Hello")
			f.End(f.Claim(f.whole(r.task())), test.ending)
			code, out, errs := r.rest()
			if diff := cmp.Diff(test.want, []any{code, out, errs}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A follower that loses its connection while the server is replaced gets every event once.
func TestChatThatIsCutOff(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	r := f.start("chat", "--follow", "Hello")
	c := f.Claim(f.whole(r.task()))
	f.Append(c, agent.Event{Kind: agent.Text, Text: "one\n"})
	_ = r.line(r.stdout)
	f.server.CloseClientConnections()
	f.Append(c, agent.Event{Kind: agent.Text, Text: "two\n"})
	f.End(c, tasks.Ending{Kind: tasks.Answered, Result: agent.Result{Text: "one\ntwo"}})
	code, out, errs := r.rest()
	if diff := cmp.Diff([]any{0, "two\n", "answered\n"}, []any{code, out, errs}); diff != "" {
		t.Error(diff)
	}
}

// The follower gives up after a while and prints how to continue.
func TestChatWhoseServerIsGone(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	f.pause = time.Millisecond
	r := f.start("chat", "--follow", "Hello")
	c := f.Claim(f.whole(r.task()))
	f.Append(c, agent.Event{Kind: agent.Text, Text: "one\n"})
	_ = r.line(r.stdout)
	f.server.CloseClientConnections()
	_ = f.server.Listener.Close()
	code, _, errs := r.rest()
	for _, want := range []string{
		"lost the connection to the server; the task may continue",
		"is `enqueue serve` or `worker -standalone` running there?", "`enqueue logs -f ",
	} {
		if code != 1 || !strings.Contains(errs, want) {
			t.Errorf("exit %d: %q is not in %s", code, want, errs)
		}
	}
}

// Without a terminal a signal leaves: the command prints how to continue, and nothing is cancelled.
func TestChatThatIsLeft(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		signal os.Signal
		code   int
	}{
		"by Ctrl-C":  {os.Interrupt, 130},
		"by SIGTERM": {syscall.SIGTERM, 143},
		"by SIGHUP":  {syscall.SIGHUP, 143},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFrontDoor(t)
			r := f.start("chat", "--follow", "Hello")
			id := f.whole(r.task())
			r.signals <- test.signal
			code, _, errs := r.rest()
			if code != test.code || !strings.Contains(errs, "the task continues: `enqueue logs -f "+display.TaskID(id)) {
				t.Errorf("exit %d: %s", code, errs)
			}
			if got := f.Status(id); got.Cancel != "" || got.Ending != nil {
				t.Errorf("cancelled by %q", got.Cancel)
			}
		})
	}
}

// The events of an absorbed task are those of the absorbing task, until that ends without an answer to it.
func TestChatThatIsAbsorbed(t *testing.T) {
	t.Parallel()
	for name, covered := range map[string]bool{"and answered there": true, "and waits again": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFrontDoor(t)
			host := f.chat("t", "6 × 7?")
			c := f.Claim(host)
			f.Append(c, agent.Event{Kind: agent.Text, Text: "before\n"})
			r := f.start("chat", "--follow", "--thread", "t", "And 6 × 8?")
			id := f.whole(r.task())
			rec, ok, err := c.Take(t.Context(), false,
				f.JSON(agent.Event{Kind: tasks.Absorbed, ToolID: host, Text: "taken up", Time: time.Now()}))
			if err != nil || !ok || rec.ID != id {
				t.Fatalf("%v, %v: %s", ok, err, rec.ID)
			}
			if got := r.line(r.stderr); got != "+ taken up\n" {
				t.Errorf("got %q", got)
			}
			f.Append(c, agent.Event{Kind: agent.Text, Text: "42, 48\n"})
			if got := r.line(r.stdout); got != "42, 48\n" {
				t.Errorf("got %q", got)
			}
			ending := tasks.Ending{Kind: tasks.Answered, At: time.Now(), Result: agent.Result{Text: "42"}}
			if covered {
				both := store.Covered{
					IDs: []string{id}, Ending: f.JSON(tasks.Ending{Kind: tasks.Answered, At: ending.At}),
				}
				if err := c.EndWith(t.Context(), f.JSON(ending), both); err != nil {
					t.Fatal(err)
				}
			} else {
				f.End(c, ending)
				c := f.Claim(id)
				f.Append(c, agent.Event{Kind: agent.Text, Text: "48\n"})
				f.End(c, ending)
			}
			want := map[bool][]any{true: {0, "", "answered\n"}, false: {0, "48\n", "answered\n"}}[covered]
			code, out, errs := r.rest()
			if diff := cmp.Diff(want, []any{code, out, errs}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The follower prints why a task waits.
func TestChatSaysWhyItWaits(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	f.patience = time.Millisecond
	r := f.start("chat", "--follow", "Hello")
	id := f.whole(r.task())
	if got, want := r.line(r.stderr),
		"! waiting: no worker is alive\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	f.End(f.Claim(id), tasks.Ending{Kind: tasks.Answered})
	if code, _, errs := r.rest(); code != 0 {
		t.Errorf("exit %d: %s", code, errs)
	}
}

func TestQuestionsAreToldWithTheirAnswer(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	r := f.start("chat", "--follow", "Paint it")
	id := f.whole(r.task())
	c := f.Claim(id)
	q := f.JSON(tasks.Question{Key: "k1", Text: "Which?", Options: []string{"red", "b\x1b[2Jlue"}})
	f.Append(c, agent.Event{Kind: tasks.Asked, Text: "Which?", Input: q}, agent.Event{Kind: tasks.Replied, Text: "red"},
		agent.Event{Kind: tasks.Replied})
	f.End(c, tasks.Ending{Kind: tasks.Answered})
	_, _, errs := r.rest()
	want := "? Which?\n  1. red\n  2. blue\n  answer with: enqueue answer --question k1 " + display.TaskID(id) + " YOUR WORDS\n" +
		"! red\n! no answer; the agent decides\n"
	if !strings.HasPrefix(errs, want) {
		t.Errorf("got\n%s\nwant\n%s", errs, want)
	}
}

// A run that went from one machine to another is followed on, over a front door that went away as well. Why it waits
// in between is for the events to say.
func TestLogsAreFollowed(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	f.patience = time.Millisecond
	id := f.submit("Hello")
	c := f.Claim(id)
	f.Append(c, agent.Event{Kind: agent.Started, Text: "opus", Time: time.Now()})
	r := f.start("logs", "-f", id)
	if got := r.line(r.stdout); !strings.HasSuffix(got, "— started, opus\n") {
		t.Errorf("at first got %q", got)
	}
	f.Append(c, agent.Event{Kind: agent.Text, Text: "one "})
	if err := c.Return(t.Context(), store.Wait{Why: "its worker shuts down"}); err != nil {
		t.Fatal(err)
	}
	f.run("show", id) // takes longer than the watcher's patience
	f.cutStream()
	c, err := f.Store.Claim(t.Context(), id, 1, "worker-2")
	if err != nil {
		t.Fatal(err)
	}
	f.Append(c,
		agent.Event{Kind: agent.Thinking, Text: "hm"}, agent.Event{Kind: agent.Text, Text: "two"},
		agent.Event{Kind: agent.ToolUse, Text: "Running x"}, agent.Event{Kind: agent.ToolResult, Text: "output"},
		agent.Event{Kind: agent.Notice, Text: "careful"}, agent.Event{Kind: agent.Text, Text: "three"},
		agent.Event{Kind: agent.TurnEnd},
	)
	f.End(c, tasks.Ending{Kind: tasks.Failed, Reason: "No luck."})
	code, out, errs := r.rest()
	var got []string
	for line := range strings.Lines(out) {
		if at, rest, ok := strings.Cut(line, " "); ok && strings.Count(at, ":") == 2 {
			line = rest
		}
		got = append(got, line)
	}
	want := []string{"one two\n", "· Running x\n", "! careful\n", "three\n", "failed\n", "No luck.\n"}
	if diff := cmp.Diff(want, got); diff != "" || code != 3 || errs != "" {
		t.Errorf("exit %d: %s: %s", code, errs, diff)
	}
}

func TestLogsJSON(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	id := f.submit("Hello")
	c := f.Claim(id)
	f.Append(c, agent.Event{Kind: agent.Text, Text: "42"})
	f.End(c, tasks.Ending{Kind: tasks.Answered})
	_, out, errs := f.run("logs", "-f", "--json", id)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var event agent.Event
	var end task
	if err := json.Unmarshal([]byte(lines[0]), &event); err != nil || event.Text != "42" {
		t.Errorf("%v: %s%s", err, out, errs)
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &end); err != nil || end.Task.ID != id {
		t.Errorf("%v: %s%s", err, out, errs)
	}
}

// full is a disk without room.
type full struct{}

var errFull = errors.New("no space left on device")

func (full) Write([]byte) (int, error) { return 0, errFull }

// A script must not take for a result what is not there: whatever cannot be printed is an error.
func TestWhatCannotBePrintedIsAnError(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	id := f.submit("Hello")
	for _, args := range []string{
		"list", "list --json", "show " + id, "show --json " + id, "costs", "costs --csv", "chat Hello", "chat --json Hello",
		"cancel " + id, "init slack", "help list",
	} {
		var errs strings.Builder
		code := run(t.Context(), strings.Fields(args), world{
			getenv: f.getenv, stdin: strings.NewReader(""), stdout: full{}, stderr: &errs,
		})
		if code != 1 || !strings.Contains(errs.String(), errFull.Error()) {
			t.Errorf("%s: exit %d: %s", args, code, errs.String())
		}
	}
}

// The follower ends if its output cannot be written.
func TestFollowingIntoAFullDiskEnds(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	id := f.submit("Hello")
	f.Append(f.Claim(id), agent.Event{Kind: agent.Text, Text: "4"})
	var errs strings.Builder
	code := run(t.Context(), []string{"logs", "-f", id}, world{
		getenv: f.getenv, stdin: strings.NewReader(""), stdout: full{}, stderr: &errs,
	})
	if code != 1 || !strings.Contains(errs.String(),
		"no space left on device; the task continues: `enqueue logs -f "+id) {
		t.Errorf("exit %d: %s", code, errs.String())
	}
}
