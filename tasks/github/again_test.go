package github

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/intake"
)

// /retry is for what went wrong last, not for what came last; delivered again it does not go on to what went wrong
// before that.
func TestRetryTakesWhatWentWrong(t *testing.T) {
	t.Parallel()
	clock := githubfake.NewClock(time.Unix(1_790_000_000, 0), time.Second)
	w := newWorld(t, githubfake.Config{Now: clock.Now}, []func(*config){func(c *config) { c.Hub.Token = "ghp_test" }})
	w.talkers()
	n, other := w.quietOpen(), w.quietOpen(func(pr *githubfake.PR) { pr.Head = "other" })
	f := w.listen()
	ask := func(n int, body string) tasks.Task {
		t.Helper()
		f.comment(n, "ann", body)
		all := f.tasks()
		return all[len(all)-1]
	}
	stop := func(task tasks.Task) {
		t.Helper()
		f.cancel(task.ID)
	}
	first := ask(n, "@errand why?")
	stop(first)
	review := ask(n, "/review")
	stop(review)
	elsewhere := ask(other, "@errand and here?")
	stop(elsewhere)
	withdrawn := ask(n, "@errand never mind")
	if _, err := f.desk.Withdraw(t.Context(), withdrawn.ID); err != nil {
		t.Fatal(err)
	}
	clock.Set(time.Now().Add(time.Minute)) // the tasks have ended by our own clock
	states := func(want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, f.states(first, review, elsewhere, withdrawn)); diff != "" {
			t.Error(diff)
		}
	}
	states("ended", "ended", "ended", "ended")
	id := f.comment(n, "ann", "/retry")
	w.signs(n, id, "eyes", "hooray")
	states("ended", "waiting", "ended", "ended")
	d, _ := w.hub.LastDelivery("issue_comment")
	if err := w.hub.Redeliver(t.Context(), d.GUID); err != nil {
		t.Fatal(err)
	}
	states("ended", "waiting", "ended", "ended")
	w.signs(n, f.comment(n, "ann", "/retry"), "eyes", "hooray")
	states("waiting", "waiting", "ended", "ended")
	f.comment(n, "ann", "/retry")
	w.wantOurs(n, intake.StillRunning)
	w.signs(n, id, "eyes", "hooray")
}

// A refused task should be retried for its author only.
func TestRetryOfRefused(t *testing.T) {
	t.Parallel()
	refused := tasks.Status{
		Task: tasks.Task{Actor: "cleo", Origin: []byte(`{"asked":{}}`)}, Ending: &tasks.Ending{Kind: tasks.Refused},
	}
	if failedFor("ann", refused) || !failedFor("Cleo", refused) {
		t.Error("what was refused to someone")
	}
	refused.Task.Origin = []byte(`{}`)
	if failedFor("cleo", refused) {
		t.Error("what nobody had asked for")
	}
	for kind, want := range map[tasks.EndingKind]bool{
		tasks.Answered: false, tasks.Superseded: false, tasks.Withdrawn: false,
		tasks.Failed: true, tasks.TimedOut: true, tasks.Stalled: true, tasks.Cancelled: true, tasks.Lost: true,
	} {
		if got := failedFor("ann", tasks.Status{Ending: &tasks.Ending{Kind: kind}}); got != want {
			t.Errorf("%s: %t", kind, got)
		}
	}
}

// A command that is delivered again should do nothing and post nothing.
func TestCancelIsDeliveredAgain(t *testing.T) {
	t.Parallel()
	w := ticking(t)
	n := w.quietOpen()
	f := w.listen()
	f.comment(n, "ann", "@errand why?")
	id := f.comment(n, "ann", "/cancel")
	w.signs(n, id, "eyes", "hooray")
	d, _ := w.hub.LastDelivery("issue_comment")
	calls := len(w.hub.Calls("POST /repos/{o}/{r}/issues/comments/{id}/reactions"))
	if err := w.hub.Redeliver(t.Context(), d.GUID); err != nil {
		t.Fatal(err)
	}
	w.wait(func() bool { return len(w.hub.Calls("POST /repos/{o}/{r}/issues/comments/{id}/reactions")) >= calls+2 })
	w.signs(n, id, "eyes", "hooray")
	w.wantOurs(n)
}

// After /retry the permission of the person counts who commented it, and not that of the author.
func TestRetryHasTheRightsOfWhoAsks(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64 // seconds
	ahead.Store(-60)
	later := func() time.Time { return time.Now().Add(time.Duration(ahead.Add(1)) * time.Second) }
	w := newWorld(t, githubfake.Config{Now: later}, []func(*config){func(c *config) { c.Hub.Token = "ghp_test" }})
	w.talkers()
	w.hub.SetPermission(repo, "ben", "write")
	n := w.quietOpen()
	f := w.listen()
	f.comment(n, "ann", "@errand why?")
	task := f.tasks()[0]
	f.cancel(task.ID)
	ahead.Store(60) // the task has ended by our own clock
	w.signs(n, f.comment(n, "ben", "/retry"), "eyes", "hooray")
	again := must(f.desk.Status(t.Context(), task.ID)).Task
	if want := (tasks.Asker{Source: "github", Account: "ben"}); again.Retrier != want || again.Actor != "ann" {
		t.Errorf("%+v asked for it again", again.Retrier)
	}
	again.Retrier.Account = "cleo" // who may only read
	wantInput(t, brief(w, again), "cleo has no write access to acme/api.")
	again.Actor, again.Retrier.Account = "cleo", "ben"
	if err := brief(w, again); err != nil {
		t.Error(err)
	}
}
