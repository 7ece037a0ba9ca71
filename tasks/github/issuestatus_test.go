package github

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/tasks"
)

// statuses returns the comments with the state of an issue, without their mark.
func (w *world) statuses(n int) (all []githubfake.Comment) {
	me := must(w.src.forge.Login(w.Context()))
	for _, c := range w.hub.Comments(repo, n) {
		if text, ok := strings.CutPrefix(c.Body, statusMark); ok && c.User == me {
			c.Body = text
			all = append(all, c)
		}
	}
	return all
}

// shows waits until the one comment with the state begins like that.
func (w *world) shows(n int, want string) githubfake.Comment {
	w.Helper()
	var last githubfake.Comment
	w.wait(func() bool {
		all := w.statuses(n)
		if len(all) > 1 {
			w.Fatalf("%+v", all)
		}
		if len(all) > 0 {
			last = all[0]
		}
		return strings.HasPrefix(last.Body, want)
	})
	return last
}

// working is an issue with a request that waits.
func (w *world) working() (f front, n int, task tasks.Task, who string) {
	w.Helper()
	w.talkers()
	w.src.reports.pause = 0
	f = w.listen()
	n = w.issue("ann", "Broken", "@errand why?")
	w.issueSigns(n, eyes)
	task = f.only()
	return f, n, task, fmt.Sprintf("[ann](%s/acme/api/issues/%d)", w.hub.URL(), n)
}

// While a request on an issue is worked on, one comment shows the state, with links: it works, asks, waits and ends.
// The next request edits the same comment, and the agent does not see it.
func TestStateOfAnIssue(t *testing.T) {
	both(t, func(w *world) {
		f, n, task, who := w.working()
		if all := w.statuses(n); len(all) > 0 {
			w.Errorf("before it starts: %+v", all)
		}
		if err := w.src.Capabilities().Waits(w.Context(), task, tasks.Headline{State: "Waiting"}); err != nil ||
			len(w.statuses(n)) > 0 {
			w.Errorf("%v: before it starts: %+v", err, w.statuses(n))
		}
		r := w.report(task)
		r.Update(agent.Event{Kind: agent.Started})
		links := "\n\n<sub>[run " + display.TaskID(task.ID) + "](https://errand.example/tasks/" + task.ID + ")"
		first := w.shows(n, "Working on "+who+"'s request."+links+"</sub>\n")
		r.Update(agent.Event{Kind: agent.ToolUse, Text: "Bash"})
		r.Update(agent.Event{Kind: tasks.Asked, Text: "Red or blue?"})
		w.shows(n, "I have asked a question about "+who+"'s request below")
		r.Update(agent.Event{Kind: tasks.Replied})
		w.shows(n, "Working on")
		if err := w.src.Capabilities().Waits(w.Context(), task, tasks.Headline{
			State: "Waiting", Detail: "@all are busy",
		}); err != nil {
			w.Fatal(err)
		}
		if got := w.shows(n, who+"'s request is waiting to continue. "); strings.Contains(got.Body, "@all") {
			w.Error(got.Body)
		}
		e := answered("Because.")
		e.Published = &tasks.Published{PullRequest: forge.PullRequestRef{Number: 7, URL: "https://hub.example/pull/7"}}
		for range 2 {
			if err := r.Close(w.Context(), e); err != nil {
				w.Fatal(err)
			}
		}
		last := w.shows(n,
			"Done: the answer to "+who+"'s request is below."+links+
				" · [draft pull request](https://hub.example/pull/7)</sub>\n")
		if last.ID != first.ID || last.Edits != 4 {
			w.Errorf("%+v", last)
		}
		if all := w.hub.Comments(repo, n); all[len(all)-1].ID == last.ID || len(all) != 2 {
			w.Errorf("%+v", all)
		}
		f.cancel(task.ID)

		id := f.comment(n, "ann", "/fix")
		w.signs(n, id, eyes)
		next := f.only()
		r = w.report(next)
		r.Update(agent.Event{Kind: agent.Started})
		if got := w.shows(n, "Working on"); got.ID != first.ID || !strings.Contains(got.Body, "/pull/7") ||
			!strings.Contains(got.Body, next.ID) {
			w.Errorf("%+v", got)
		}
		if b := w.briefed(next); strings.Contains(b.Prompt.Text, "Working on") {
			w.Error(b.Prompt.Text)
		}
		if err := r.Close(w.Context(), tasks.Ending{
			Kind: tasks.Failed, Reason: "It broke, @ann.", At: ended,
		}); err != nil {
			w.Fatal(err)
		}
		if got := w.shows(n, "[ann]("); !strings.Contains(got.Body, "has ended. It broke, ") ||
			strings.Contains(got.Body, "@ann") {
			w.Error(got.Body)
		}
	})
}

// A state that could not be written is written later. Writers that are late, also those of other workers, change
// nothing.
func TestLateStates(t *testing.T) {
	t.Parallel()
	w := withToken(t)
	_, n, task, _ := w.working()
	waits := tasks.Headline{State: "Waiting"}
	task.Fence = 7
	first := w.report(task)
	w.hub.Fail(createComment, githubfake.Failure{Status: 403, Body: `{"message":"Not now"}`})
	first.Update(agent.Event{Kind: agent.Started})
	w.shows(n, "Working on")
	late := task
	task.Fence = 9
	second := w.report(task)
	second.Update(agent.Event{Kind: tasks.Asked})
	w.shows(n, "I have asked")
	if err := w.src.Capabilities().Waits(t.Context(), late, waits); err != nil {
		t.Fatal(err)
	}
	if err := first.(*report).shown.(*issueAnswer).showState(t.Context(), stateWorking); err != nil {
		t.Fatal(err)
	}
	w.shows(n, "I have asked")
	if err := w.src.Capabilities().Waits(t.Context(), task, waits); err != nil {
		t.Fatal(err)
	}
	w.shows(n, "[ann](")
	if err := second.(*report).shown.(*issueAnswer).showState(t.Context(), stateWorking); err != nil {
		t.Fatal(err)
	}
	if got := w.shows(n, "[ann]("); got.Edits != 2 {
		t.Errorf("%+v", got)
	}
}

// If GitHub does not take the answer, the state does not say that it is there.
func TestStateWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	w := withToken(t)
	_, n, task, who := w.working()
	r := w.report(task)
	r.Update(agent.Event{Kind: agent.Started})
	w.shows(n, "Working on")
	w.hub.Fail(createComment, githubfake.Failure{Status: 403, Body: `{"message":"Not allowed"}`})
	if err := r.Close(t.Context(), answered("Because.")); err == nil {
		t.Error("gave up the answer")
	}
	w.shows(n,
		"Done, but GitHub rejected the answer to "+who+"'s request. See the run's page."+
			"\n\n<sub>[run "+display.TaskID(task.ID)+"](https://errand.example/")
}

// The comment is created once, also if GitHub's response was lost or someone has copied the mark. The worker that
// takes over after a crash, or posts the end, finds it.
func TestStateOfAnIssueOnce(t *testing.T) {
	t.Parallel()
	w := withToken(t)
	f, n, task, _ := w.working()
	f.comment(n, "mallory", statusMark+"Hacked.")
	w.hub.Fail(createComment, githubfake.Failure{Status: 502, After: true})
	w.src.reports.pause = time.Hour // until it tries again
	r := w.report(task)
	r.Update(agent.Event{Kind: agent.Started})
	first := w.shows(n, "Working on")
	w.src = w.again() // the worker has died before it learnt the ID
	w.src.reports.pause = 0
	r = w.report(task)
	r.Update(agent.Event{Kind: agent.Started})
	w.wait(func() bool { return w.statuses(n)[0].Edits > 0 })
	if err := r.(*report).shown.(*issueAnswer).progress.Close(t.Context()); err != nil { // it has noted the ID
		t.Fatal(err)
	}
	w.src = w.again() // and so has the next one
	before := len(w.hub.Calls(listComments))
	w.hub.Fail(editComment, githubfake.Failure{Status: 502})
	again := w.report(task)
	if err := again.Close(t.Context(), answered("Because.")); err == nil {
		t.Error("the end is not shown, and nobody tries again")
	}
	w.close(task, answered("Because."))
	if got := w.shows(n, "Done: "); got.ID != first.ID {
		t.Errorf("%+v", got)
	}
	if calls := len(w.hub.Calls(listComments)) - before; calls != 2 { // for the answer
		t.Errorf("%d lists", calls)
	}
	edits := w.statuses(n)[0].Edits
	w.close(task, answered("Because."))
	if got := w.statuses(n); len(got) != 1 || got[0].Edits != edits {
		t.Errorf("%+v", got)
	}
}

// A request that never ran has no comment with a state, and work that is stopped leaves none that says that it runs. If
// people have deleted the comment, neither the same run nor its end makes a new one, and the next request does.
func TestStateOfStoppedWork(t *testing.T) {
	t.Parallel()
	w := withToken(t)
	f, n, task, _ := w.working()
	w.close(task, tasks.Ending{Kind: tasks.Refused, Reason: "No.", At: ended})
	if all := w.statuses(n); len(all) > 0 {
		t.Errorf("%+v", all)
	}
	start := func() (tasks.Report, githubfake.Comment) {
		r := w.report(task)
		r.Update(agent.Event{Kind: agent.Started})
		return r, w.shows(n, "Working on")
	}
	r, _ := start()
	if err := w.hub.ChangeIssue(t.Context(), repo, n, "locked", "ann"); err != nil {
		t.Fatal(err)
	}
	e := tasks.Ending{Kind: tasks.Superseded, Reason: issueEnds["locked"], At: ended.Add(time.Hour)}
	if err := r.Close(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	w.shows(n, "[ann](")
	r, c := start()
	if err := w.hub.DeleteComment(t.Context(), repo, n, c.ID, "ann"); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the first finds out
		if err := r.(*report).shown.(*issueAnswer).showState(t.Context(), stateAsking); err != nil ||
			len(w.statuses(n)) > 0 {
			t.Errorf("%v, %+v", err, w.statuses(n))
		}
	}
	e.At = e.At.Add(time.Hour)
	if err := r.Close(t.Context(), e); err != nil || len(w.statuses(n)) > 0 {
		t.Errorf("%v, %+v", err, w.statuses(n))
	}
	start()
	_ = f
}
