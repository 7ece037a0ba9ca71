package github

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
	"github.com/errand-fleet/errand/tasks/intake"
	"github.com/errand-fleet/errand/tasks/rights"
)

// planned is a front door with an issue, on which a plan was posted. ask writes a comment and returns its task; answer
// posts the answer of a task and ends it.
func plannedIssue(
	t *testing.T, change ...func(*config),
) (f front, n int, ask func(user, body string) tasks.Task, answer func(tasks.Task, string)) {
	t.Helper()
	w := ticking(t, change...)
	f = w.listen()
	n = w.issue("mallory", "Total is wrong", "It is one too much.")
	ask = func(user, body string) tasks.Task {
		t.Helper()
		f.comment(n, user, body)
		return f.latestTask()
	}
	answer = func(task tasks.Task, text string) {
		t.Helper()
		e := answered(text)
		e.At = tasks.Born(task.ID)
		w.close(task, e)
		f.cancel(task.ID)
	}
	answer(ask("ann", "/plan but leave the tax alone"), "First this, then that.")
	return f, n, ask, answer
}

// A plan is made without changes and waits. Requests change it until a person with write access approves it, which has
// errand carry it out. Later requests are no plans.
func TestPlan(t *testing.T) {
	t.Parallel()
	f, n, ask, answer := plannedIssue(t)
	said := f.ours(n)
	if len(said) != 1 || !strings.Contains(said[0], "First this, then that.") ||
		!strings.Contains(said[0], howToApprove) {
		t.Errorf("%q", said)
	}
	isPlan := func(task tasks.Task, plan bool) {
		t.Helper()
		want := map[bool]agent.Profile{true: agent.Read, false: agent.Write}[plan]
		if task.Options.Plan != plan || task.Profile != want || task.Thread != fmt.Sprintf("github/acme/api#%d", n) {
			t.Errorf("%+v", task)
		}
	}
	correction := ask("ann", "@errand and the tax as well")
	isPlan(correction, true)
	if b := f.briefed(correction); !strings.Contains(b.Prompt.Text, "and the tax as well") ||
		!strings.Contains(b.System, "You can read files but not run commands.") {
		t.Errorf("%+v", b)
	}
	f.signs(n, f.comment(n, "ann", "/approve"), notDone) // what it approves is not known yet
	f.wait(func() bool {
		said := f.ours(n)
		return strings.HasPrefix(said[len(said)-1], noPlan)
	})
	late := answered("Both.")
	late.At = tasks.Born(correction.ID).Add(time.Hour)
	f.close(correction, late)
	f.signs(n, f.comment(n, "ann", "/approve"), notDone) // of the plan before: it came late
	answer(correction, "Both.")
	f.signs(n, f.comment(n, "cleo", "/approve"), notDone)
	if all := f.tasks(); len(all) > 0 {
		t.Fatalf("%+v", all)
	}

	approved := ask("ann", "/approve")
	isPlan(approved, false)
	d, _ := f.hub.LastDelivery("issue_comment")
	if err := f.hub.Redeliver(t.Context(), d.GUID); err != nil || f.only().ID != approved.ID {
		t.Errorf("%v %+v", err, f.tasks())
	}
	b := f.briefed(approved)
	if !strings.HasPrefix(b.Prompt.Text, "@ann, who can write to this repository, approves the plan") ||
		!strings.Contains(b.Prompt.Text, "Both.") || b.Fixes != n {
		t.Errorf("%+v", b)
	}
	f.signs(n, f.comment(n, "ann", "/approve"), notDone)
	if f.only().ID != approved.ID {
		t.Errorf("%+v", f.tasks())
	}
	isPlan(ask("ann", "@errand why so?"), false)
}

// A plan is dropped by /cancel, also while it is being changed, and when the issue is worked on without it. A
// stranger's plan is none.
func TestPlanIsDropped(t *testing.T) {
	t.Parallel()
	for name, drop := range map[string]func(f front, n int, ask func(user, body string) tasks.Task){
		"cancelled": func(f front, n int, _ func(user, body string) tasks.Task) {
			f.signs(n, f.comment(n, "ann", "/cancel"), eyes, done)
		},
		"fixed": func(_ front, _ int, ask func(user, body string) tasks.Task) { ask("ann", "/fix") },
		"labelled": func(f front, n int, _ func(user, body string) tasks.Task) {
			if err := f.hub.LabelIssue(f.Context(), repo, n, "errand", "ann"); err != nil {
				t.Fatal(err)
			}
		},
		"cancelled with a correction": func(f front, n int, ask func(user, body string) tasks.Task) {
			task := ask("ann", "@errand and the tax as well")
			f.signs(n, f.comment(n, "ann", "/cancel"), eyes, done)
			f.close(task, tasks.Ending{Kind: tasks.Cancelled, By: "ann", At: ended})
		},
	} {
		f, n, ask, _ := plannedIssue(t)
		drop(f, n, ask)
		if task := ask("ann", "@errand why?"); task.Options.Plan || task.Profile != agent.Write {
			t.Errorf("%s: %+v", name, task)
		}
		f.signs(n, f.comment(n, "ann", "/approve"), notDone)
	}
	f, n, ask, _ := plannedIssue(t)
	f.signs(n, f.comment(n, "cleo", "/cancel"), notDone)
	refused := ask("cleo", "/plan FORGED")
	wantInput(t, brief(f.world, refused), "cleo has no write access")
	f.close(refused, tasks.Ending{Kind: tasks.Refused, Reason: "cleo has no write access.", At: ended})
	if task := ask("ann", "@errand why?"); !task.Options.Plan {
		t.Errorf("%+v", task)
	}
}

// A request that fails leaves the plan that it was to change, and without one there is none.
func TestPlanWithAFailedRequest(t *testing.T) {
	t.Parallel()
	failed := tasks.Ending{Kind: tasks.Failed, Reason: "The model is overloaded.", At: ended}
	for body, fail := range map[string]func(f front, first, second tasks.Task){
		"/plan something else": func(f front, first, second tasks.Task) {
			e := failed
			e.Covers = []string{second.ID}
			f.close(first, e)
		},
		"@errand and the tax": func(f front, first, second tasks.Task) {
			f.close(second, failed)
			f.close(first, tasks.Ending{Kind: tasks.Cancelled, By: "bob", At: ended})
		},
	} {
		t.Run(body, func(t *testing.T) {
			t.Parallel()
			f, n, ask, _ := plannedIssue(t)
			fail(f, ask("ann", body), ask("ann", "@errand but use a library"))
			if task := ask("ann", "/approve"); task.Options.Plan || task.Profile != agent.Write ||
				task.Kind != subject.KindIssue {
				t.Errorf("the plan that was posted: %+v", task)
			}
			f.signs(n, f.comment(n, "ann", "/approve"), notDone)
			other := f.issue("mallory", "Tax is wrong", "It is too high.")
			request := func(body string) tasks.Task {
				f.comment(other, "ann", body)
				return f.latestTask()
			}
			fail(f, request("/plan"), request("@errand and the tax"))
			if task := request("@errand why?"); task.Options.Plan {
				t.Errorf("no plan was made: %+v", task)
			}
		})
	}
}

// fragile is a memory that fails once.
type fragile struct {
	intake.Memory
	fail atomic.Bool
}

func (m *fragile) ChangeMemo(ctx context.Context, name string,
	change func(json.RawMessage) (json.RawMessage, error),
) error {
	if m.fail.CompareAndSwap(true, false) {
		return errors.New("no memory at the moment")
	}
	return m.Memory.ChangeMemo(ctx, name, change)
}

// A withdrawal that failed halfway is completed when its event is delivered again.
func TestPlanWithdrawnAgain(t *testing.T) {
	t.Parallel()
	for name, withdraw := range map[string]func(f front, n int, id int64) error{
		"deleted": func(f front, n int, id int64) error { return f.hub.DeleteComment(f.Context(), repo, n, id, "ann") },
		"edited": func(f front, n int, id int64) error {
			return f.hub.EditComment(f.Context(), repo, n, id, "ann", "Never mind.")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			memory := &fragile{}
			f, n, _, _ := plannedIssue(t, func(c *config) { memory.Memory, c.Memory = c.Memory, memory })
			id := f.comment(n, "ann", "/fix")
			f.signs(n, id, eyes)
			memory.fail.Store(true)
			_ = withdraw(f, n, id) // its event is refused
			if len(f.tasks()) > 0 || memory.fail.Load() {
				t.Fatalf("%+v", f.tasks())
			}
			d, _ := f.hub.LastDelivery("issue_comment")
			for range 2 {
				if err := f.hub.Redeliver(t.Context(), d.GUID); err != nil {
					t.Fatal(err)
				}
			}
			f.signs(n, f.comment(n, "ann", "/approve"), eyes)
		})
	}
}

// A request that is deleted while it waits changes no plan: neither one that it was to make, nor one that was posted.
func TestPlanIsWithdrawn(t *testing.T) {
	t.Parallel()
	f, n, ask, _ := plannedIssue(t)
	withdraw := func(n int, body string) {
		t.Helper()
		id := f.comment(n, "ann", body)
		f.signs(n, id, eyes)
		if err := f.hub.DeleteComment(t.Context(), repo, n, id, "ann"); err != nil || len(f.tasks()) > 0 {
			t.Fatalf("%s: %v %+v", body, err, f.tasks())
		}
	}
	for _, body := range []string{"/plan", "@errand and the tax as well", "/approve"} {
		withdraw(n, body)
	}
	approved := ask("ann", "/approve")
	if approved.Options.Plan || approved.Profile != agent.Write || approved.Kind != subject.KindIssue {
		t.Errorf("%+v", approved)
	}
	other := f.issue("mallory", "Tax is wrong", "It is too high.")
	if _, err := f.desk.Cancel(t.Context(), f.only().ID, "ann"); err != nil {
		t.Fatal(err)
	}
	withdraw(other, "/plan")
	f.comment(other, "ann", "@errand why?")
	if task := f.only(); task.Options.Plan || task.Profile != agent.Write {
		t.Errorf("%+v", task)
	}
}

// A request that is deleted leaves the plan that it would change or drop, also one that is made meanwhile.
func TestPlanBehindAWithdrawnRequest(t *testing.T) {
	t.Parallel()
	for body, made := range map[string]bool{"@errand and the tax": true, "/fix": false} {
		t.Run(body, func(t *testing.T) {
			t.Parallel()
			f, _, _, _ := plannedIssue(t)
			n := f.issue("mallory", "Tax is wrong", "It is too high.")
			f.comment(n, "ann", "/plan")
			planning := f.latestTask()
			id := f.comment(n, "ann", body)
			f.signs(n, id, eyes)
			end := func() {
				e := answered("All of it.")
				e.At = tasks.Born(planning.ID)
				f.close(planning, e)
			}
			if made {
				end()
			}
			if err := f.hub.DeleteComment(t.Context(), repo, n, id, "ann"); err != nil {
				t.Fatal(err)
			}
			correction := f.comment(n, "ann", "@errand but use a library")
			f.signs(n, correction, eyes)
			if task := f.latestTask(); !task.Options.Plan || task.Profile != agent.Read {
				t.Errorf("a plan is still being made or waits: %+v", task)
			}
			if err := f.hub.DeleteComment(t.Context(), repo, n, correction, "ann"); err != nil {
				t.Fatal(err)
			}
			if !made {
				end()
			}
			f.signs(n, f.comment(n, "ann", "/approve"), eyes)
		})
	}
}

// A request that was not deleted counts after the later ones were deleted.
func TestPlanBehindARequestThatStands(t *testing.T) {
	t.Parallel()
	for body, plan := range map[string]bool{"/approve": false, "/fix": false, "/plan something else": true} {
		f, n, ask, _ := plannedIssue(t)
		first := ask("ann", body)
		var later []int64
		for _, body := range []string{"/plan all of it", "/fix"} {
			later = append(later, f.comment(n, "ann", body))
		}
		for _, id := range later {
			if err := f.hub.DeleteComment(t.Context(), repo, n, id, "ann"); err != nil {
				t.Fatal(err)
			}
		}
		if f.only().ID != first.ID {
			t.Fatalf("%s: %+v", body, f.tasks())
		}
		f.signs(n, f.comment(n, "ann", "/approve"), notDone)
		if next := ask("ann", "@errand why?"); next.Options.Plan != plan {
			t.Errorf("%s: %+v", body, next)
		}
	}
}

// Work that never starts, because the label was removed in time, leaves the plan waiting. Once it has started, the plan
// does not come back.
func TestPlanBehindARemovedLabel(t *testing.T) {
	t.Parallel()
	f, n, ask, _ := plannedIssue(t)
	if err := f.hub.LabelIssue(t.Context(), repo, n, "errand", "ann"); err != nil {
		t.Fatal(err)
	}
	work := f.only()
	if err := f.hub.UnlabelIssue(t.Context(), repo, n, "errand", "ann"); err != nil {
		t.Fatal(err)
	}
	wantInput(t, brief(f.world, work), "no longer has the label")
	f.close(work, tasks.Ending{Kind: tasks.Refused, Reason: "The issue no longer has the label.", At: ended})
	f.cancel(work.ID)
	approved := ask("ann", "/approve")
	if approved.Kind != subject.KindIssue || approved.Profile != agent.Write {
		t.Errorf("%+v", approved)
	}
	f.close(approved, tasks.Ending{Kind: tasks.Failed, Reason: "The model is overloaded.", At: ended})
	f.signs(n, f.comment(n, "ann", "/approve"), notDone)
}

// A plan that is made while the work as a whole has been requested is not waited for.
func TestPlanBehindTheWork(t *testing.T) {
	t.Parallel()
	f, _, ask, _ := plannedIssue(t)
	planning := ask("ann", "/plan")
	if work := ask("ann", "/fix"); work.Kind != subject.KindIssue {
		t.Fatalf("%+v", work)
	}
	e := answered("All of it.")
	e.At = tasks.Born(planning.ID)
	f.close(planning, e)
	if next := ask("ann", "@errand but use a library"); next.Options.Plan {
		t.Errorf("%+v", next)
	}
}

// A label that is noted only after its work was refused leaves the plan waiting.
func TestPlanBehindALateLabel(t *testing.T) {
	t.Parallel()
	memory := &fragile{}
	f, n, _, _ := plannedIssue(t, func(c *config) { memory.Memory, c.Memory = c.Memory, memory })
	memory.fail.Store(true)
	_ = f.hub.LabelIssue(t.Context(), repo, n, "errand", "ann") // its event is refused
	work := f.only()
	if must(subject.Of(work)).Action != subject.ActionLabeled || memory.fail.Load() {
		t.Fatalf("%+v", work)
	}
	d, _ := f.hub.LastDelivery("issues")
	f.close(work, tasks.Ending{Kind: tasks.Refused, Reason: "The issue no longer has the label.", At: ended})
	f.cancel(work.ID)
	if err := f.hub.Redeliver(t.Context(), d.GUID); err != nil {
		t.Fatal(err)
	}
	f.signs(n, f.comment(n, "ann", "/approve"), eyes)
}

// An approval that the fleet or the repository's settings refuse leaves the plan waiting.
func TestApprovalIsRefused(t *testing.T) {
	t.Parallel()
	f, n, _, _ := plannedIssue(t)
	none := func(string) (rights.Repository, bool) { return rights.Repository{}, false }
	f.listenUnder(must(redis.ParseURL(f.redis)), rights.Policy{Repository: none})
	f.signs(n, f.comment(n, "ann", "/approve"), notDone)
	f.hub.Deliver(f.url)
	f.interpret()
	set := func(setting string) {
		must(f.repo.Commit("main", "", map[string]string{".github/errand.yml": setting}, "Say what is wanted"))
		f.forgetSettings()
	}
	set("issues: off")
	f.comment(n, "ann", "/approve")
	if all := f.tasks(); len(all) > 0 {
		t.Errorf("%+v", all)
	}
	set("issues: ask")
	f.signs(n, f.comment(n, "ann", "/approve"), eyes)
}

// An approval counts only with its task: if GitHub fails before there is one, the plan still waits. If it is not recorded
// after the task, the plan is nevertheless carried out once.
func TestApprovalFails(t *testing.T) {
	t.Parallel()
	memory := &fragile{}
	f, n, _, answer := plannedIssue(t, func(c *config) { memory.Memory, c.Memory = c.Memory, memory })
	f.hub.Deliver("")
	missed := f.comment(n, "ann", "/approve")
	where := must(f.src.api.Reach(t.Context(), thread.Ref{Repo: repo}))
	v := &repositoryPoll{Thread: where, p: f.src.newPoller(f.desk)}
	f.hub.Fail("GET /repos/{o}/{r}/issues/{n}", githubfake.Failure{Status: 502})
	failed := false
	for r, err := range v.Comments(t.Context(), time.Time{}) {
		if err == nil && r.ID == missed {
			failed = v.missedRemark(t.Context(), v.onPage(r)) != nil
		}
	}
	if !failed || len(f.tasks()) > 0 {
		t.Fatalf("failed: %t, tasks: %+v", failed, f.tasks())
	}

	f.hub.Deliver(f.url)
	memory.fail.Store(true)
	if _, err := f.hub.Comment(t.Context(), repo, n, "ann", "/approve"); err == nil {
		t.Error("the event was handled without a record")
	}
	task := f.only()
	f.signs(n, f.comment(n, "ann", "/approve"), notDone)
	if got := f.only(); got.ID != task.ID {
		t.Errorf("carried out twice: %+v", got)
	}
	answer(task, "Done.")
	f.signs(n, f.comment(n, "ann", "/approve"), notDone)
}

// A request that was edited counts with its new words, also when the event of its first ones is delivered again.
func TestPlanOfAnEditedRequest(t *testing.T) {
	t.Parallel()
	f, n, _, _ := plannedIssue(t)
	id := f.comment(n, "ann", "/fix")
	created, _ := f.hub.LastDelivery("issue_comment")
	if err := f.hub.EditComment(t.Context(), repo, n, id, "ann", "/plan all of it"); err != nil {
		t.Fatal(err)
	}
	if err := f.hub.Redeliver(t.Context(), created.GUID); err != nil {
		t.Fatal(err)
	}
	task := f.only()
	p := must(f.src.memory.State(t.Context(), thread.Ref{Repo: repo, Number: n}))
	if last := p.Plans.Last(); !task.Options.Plan || last.Task != task.ID || last.Work {
		t.Errorf("task %+v, plans %+v", task, p.Plans)
	}
}

// An event that comes late or again, after its request was withdrawn or has failed, changes no plan.
func TestPlanIsNotedLate(t *testing.T) {
	t.Parallel()
	again := func(f front, n int, body string, end func(int64)) {
		t.Helper()
		id := f.comment(n, "ann", body)
		f.signs(n, id, eyes)
		created, _ := f.hub.LastDelivery("issue_comment")
		end(id)
		if err := f.hub.Redeliver(t.Context(), created.GUID); err != nil {
			t.Fatal(err)
		}
	}
	for _, body := range []string{"/plan", "/fix"} {
		f, n, _, _ := plannedIssue(t)
		withdraw := func(id int64) {
			if err := f.hub.DeleteComment(t.Context(), repo, n, id, "ann"); err != nil {
				t.Fatal(err)
			}
		}
		again(f, n, body, withdraw)
		f.signs(n, f.comment(n, "ann", "/approve"), eyes)
	}
	f, n, _, answer := plannedIssue(t)
	again(f, n, "/plan", func(int64) {
		answer(f.only(), "All of it.")
		f.signs(n, f.comment(n, "ann", "/cancel"), eyes, done)
	})
	f.signs(n, f.comment(n, "ann", "/approve"), notDone)
	n = f.issue("mallory", "Tax is wrong", "It is too high.")
	again(f, n, "/plan", func(int64) {
		f.close(f.only(), tasks.Ending{Kind: tasks.Failed, Reason: "The model is overloaded.", At: ended})
		f.cancel(f.only().ID)
	})
	f.comment(n, "ann", "@errand why?")
	if task := f.only(); task.Options.Plan || task.Profile != agent.Write {
		t.Errorf("%+v", task)
	}
}

// A correction that reaches the agent while it plans is in the plan that it posts.
func TestPlanWithCorrections(t *testing.T) {
	t.Parallel()
	f, n, ask, _ := plannedIssue(t)
	task := ask("ann", "/plan")
	correction := ask("ann", "@errand and the tax")
	if !correction.Options.Plan || tasks.MergeKey(task) != tasks.MergeKey(correction) {
		t.Errorf("%+v %+v", task, correction)
	}
	e := answered("Both.")
	e.At, e.Covers = tasks.Born(correction.ID), []string{correction.ID}
	f.close(task, e)
	f.signs(n, f.comment(n, "ann", "/approve"), eyes)
}

// Plans are for issues.
func TestPlanOnAPullRequest(t *testing.T) {
	t.Parallel()
	w := ticking(t)
	n := w.quietOpen()
	f := w.listen()
	f.signs(n, f.comment(n, "ann", "/plan"), notDone)
	w.wantOurs(n, onlyOnIssues)
	f.signs(n, f.comment(n, "ann", "/approve"), notDone)
	w.wantOurs(n, onlyOnIssues, noQuestion)
	if strings.Contains(help(remarkEvent{}), cmdPlan) || !strings.Contains(help(remarkEvent{OnIssue: true}), cmdPlan) {
		t.Error(help(remarkEvent{OnIssue: true}))
	}
}
