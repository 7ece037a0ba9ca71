package main

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/web/logs"
)

func TestList(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	ended := f.submit("First\x1b[2J")
	f.End(f.Claim(ended), tasks.Ending{Kind: tasks.TimedOut, Result: agent.Result{CostUSD: 1.5}})
	waiting := f.submit("Second")
	_, out, _ := f.run("list")
	var got [][]string
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		got = append(got, append(fields[:4:4], fields[5:]...)) // without the age
	}
	want := [][]string{
		{"ID", "STATE", "SOURCE", "WHO", "COST", "TASK"},
		{display.TaskID(waiting), "waiting", "slack", "ann", "Second", "(no", "worker", "is", "alive)"},
		{display.TaskID(ended), "timed_out", "slack", "ann", "$1.50", "First"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, out, _ := f.run("list", "--state", "ended"); strings.Contains(out, "waiting") || !strings.Contains(out, display.TaskID(ended)) {
		t.Errorf("the ended ones are %s", out)
	}
	_, out, _ = f.run("list", "--json", "--state", "waiting")
	var page struct{ Tasks []task }
	if err := json.Unmarshal([]byte(out), &page); err != nil || len(page.Tasks) != 1 ||
		page.Tasks[0].Task.ID != waiting {
		t.Errorf("%v: %s", err, out)
	}
	if code, _, errs := f.run("list", "--state", "lost"); code != 2 ||
		!strings.Contains(errs, "waiting, running, absorbed and ended") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// Each filter reaches the API under its name there.
func TestListFilters(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	other := f.chat("t", "Something else")
	id := f.submit("Paint it")
	f.End(f.Claim(id), tasks.Ending{Kind: tasks.Stalled})
	for _, args := range [][]string{
		{"--source", "slack"},
		{"--repo", "acme/app"},
		{"--person", "ann"},
		{"--channel", "C1"},
		{"--ending", "stalled"},
		{"--text", "paint IT"},
		{"--limit", "1"},
		{"--state", "ended"},
	} {
		if _, out, errs := f.run(append([]string{"list"}, args...)...); !strings.Contains(out, display.TaskID(id)) ||
			strings.Contains(out, "Something else") {
			t.Errorf("%q: %s%s", args, out, errs)
		}
	}
	for _, before := range []string{id, display.TaskID(id)} {
		if _, out, _ := f.run("list", "--before", before); strings.Contains(out, display.TaskID(id)) ||
			!strings.Contains(out, display.TaskID(other)) {
			t.Errorf("older ones: %s", out)
		}
	}
	if _, _, errs := f.run("list", "--limit", "1"); errs != "For older tasks add --before "+id+"\n" {
		t.Errorf("got %q", errs)
	}
	if _, _, errs := f.run("list", "--text", "nowhere"); errs != "No task matches.\n" {
		t.Errorf("got %q", errs)
	}
}

// Programs get the API's JSON.
func TestAnswersForPrograms(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	id := f.submit("Hello")
	for _, command := range []string{"show", "cancel", "retry"} {
		code, out, errs := f.run(command, "--json", id)
		var v task
		if err := json.Unmarshal([]byte(out), &v); code != 0 || errs != "" || err != nil || v.Task.ID != id {
			t.Errorf("%s: exit %d, %v: %s%s", command, code, err, out, errs)
		}
	}
	f.run("cancel", id) // else it comes first
	id = f.submit("Hello again")
	c := f.Claim(id)
	if _, err := c.Ask(t.Context(), "k", f.JSON(tasks.Question{Key: "k", Text: "Which?"})); err != nil {
		t.Fatal(err)
	}
	_, out, _ := f.run("answer", "--json", id, "red")
	var a tasks.Answer
	if err := json.Unmarshal([]byte(out), &a); err != nil || a.Text != "red" {
		t.Errorf("%v: %s", err, out)
	}
}

func TestShow(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	id := f.submit("What is it?\x1b[2J\nSay.")
	f.End(f.Claim(id), tasks.Ending{Kind: tasks.Failed, Reason: "No luck.", Result: agent.Result{Partial: "It may be"}})
	code, out, errs := f.run("show", id)
	if code != 0 || errs != "" {
		t.Errorf("exit %d: %s", code, errs)
	}
	for _, want := range []string{
		display.TaskID(id), "failed", "ann (slack/ann)", "slack/x", "worker-1", "\n> What is it?\n> Say.\n", "\nNo luck.\n",
		"\nIt may be\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in %s", want, out)
		}
	}
}

// The work in each repository has a line.
func TestShowSeveralRepositories(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	id := f.submit("Do it.")
	work := func(repo string) *tasks.Published {
		ref := forge.PullRequestRef{Number: 3, URL: "https://hub.example/" + repo}
		return &tasks.Published{Work: tasks.Work{Repo: repo}, PullRequest: ref}
	}
	f.End(f.Claim(id), tasks.Ending{
		Kind: tasks.Answered, Published: work("acme/api"), Also: []*tasks.Published{work("acme/web")},
	})
	_, out, _ := f.run("show", id)
	for _, want := range []string{
		"\npublished      Pull request acme/api#3: https://hub.example/acme/api\n",
		"\npublished      Pull request acme/web#3: https://hub.example/acme/web\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in %s", want, out)
		}
	}
}

func TestCancelAndRetry(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	id := f.submit("Hello")
	for _, step := range []struct {
		command string
		code    int
		said    string
	}{
		{"retry", 1, "Not ended"},
		{"cancel", 0, display.TaskID(id) + " is cancelled\n"},
		{"retry", 0, display.TaskID(id) + " is waiting\n"},
	} {
		code, out, errs := f.run(step.command, id)
		if code != step.code || !strings.Contains(out+errs, step.said) {
			t.Errorf("%s: exit %d: %s%s", step.command, code, out, errs)
		}
	}
	second := f.submit("Hello again")
	f.run("cancel", id) // else it comes first
	f.Claim(second)
	if _, out, errs := f.run("cancel", second); out != display.TaskID(second)+" is stopping\n" {
		t.Errorf("%s%s", out, errs)
	}
}

func TestLogs(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	id := f.submit("Hello")
	f.Claim(id)
	if code, _, errs := f.run("logs", id); code != 1 || !strings.Contains(errs, "worker-1") {
		t.Errorf("a log that is elsewhere: exit %d: %s", code, errs)
	}
	if err := os.WriteFile(filepath.Join(f.logs, id+".log"),
		[]byte("# errand\nred \x1b[31m\tx\nno end"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := f.run("logs", id)
	if diff := cmp.Diff([]any{0, "# errand\nred \tx\nno end", ""}, []any{code, out, errs}); diff != "" {
		t.Error(diff)
	}
	const line = "{\"text\":\"\u202egnp\"}\n"
	if err := os.WriteFile(filepath.Join(f.logs, id+".ndjson"), []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := f.run("logs", "--json", id); code != 0 || out != line { // for programs as it came
		t.Errorf("exit %d: %q, %s", code, out, errs)
	}
}

// Where the log is makes no difference to who reads it: with a worker that lives, or in the store when that is gone.
func TestLogsOfElsewhere(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	id := f.submit("Hello")
	c := f.Claim(id)
	dir := t.TempDir()
	worker := httptest.NewServer(logs.Server(dir, fleetToken))
	host, err := os.Hostname()
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, id+".log"), []byte("on its disk\n"), 0o600)
	}
	if err == nil {
		_, err = f.Store.Workers.Beat(t.Context(), store.Worker{ID: "worker-1", Host: host, URL: worker.URL})
	}
	if err != nil {
		t.Fatal(err)
	}
	if code, out, errs := f.run("logs", id); code != 0 || out != "on its disk\n" {
		t.Errorf("with its worker: exit %d: %s%s", code, out, errs)
	}
	worker.Close()
	if err := c.SaveLog(t.Context(), tasks.PeopleLog, []byte("in the store\n")); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := f.run("logs", id); code != 0 || out != "in the store\n" {
		t.Errorf("without: exit %d: %s%s", code, out, errs)
	}
}

// A task that was begun and waits says for what.
func TestShowWaiting(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	id, at := f.submit("What is it?"), time.Now().Add(time.Hour)
	if err := f.Claim(id).Return(t.Context(), store.Wait{
		At: at, Why: "the limit is reached", Parked: "limit",
	}); err != nil {
		t.Fatal(err)
	}
	_, out, _ := f.run("show", id)
	for _, want := range []string{"the limit is reached", at.Local().Format(time.DateTime)} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in:\n%s", want, out)
		}
	}
}

// docs/operations.md quotes what is shown of a task that is stuck.
func TestShowSaysWhatTheDocsQuote(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	c := newTerminal(world{getenv: func(string) string { return "" }, stdout: &out, stderr: &out})
	v := task{State: "waiting", Position: 2, Into: "OTHER", Why: "the limit is reached", At: time.Now(), Worker: "w-1"}
	v.Questions = []question{{Key: "k", Text: "Which?"}}
	c.printTask(v)
	_, doc, _ := strings.Cut(read(t, "..", "..", "docs", "operations.md"), "## A task that is stuck")
	doc, _, _ = strings.Cut(doc, "\n## ")
	for _, quoted := range []string{
		"waits", "not before", "position", "in its line", "in the run of", "worker", "?",
	} {
		if !strings.Contains(doc, quoted) || !strings.Contains(out.String(), quoted) {
			t.Errorf("%q is not both in the page and in\n%s", quoted, &out)
		}
	}
}

// The answer of a review is JSON, which is hard to read in one line.
func TestShowIndentsForms(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	id := f.submit("Review")
	f.End(f.Claim(id), tasks.Ending{
		Kind: tasks.Answered, Result: agent.Result{Text: `{"summary":"Well.","findings":[]}`},
	})
	if _, out, _ := f.run("show", id); !strings.HasSuffix(out,
		"\n{\n  \"summary\": \"Well.\",\n  \"findings\": []\n}\n") {
		t.Errorf("it shows %s", out)
	}
}
