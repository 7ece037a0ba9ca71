package github

import (
	std "cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/go-github/v60/github"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
)

// endings are all the kinds with what a check run and a status make of them.
var endings = []struct {
	e                          tasks.Ending
	conclusion, title, summary string
	status                     string // description
}{
	{
		answered("Fine."), "neutral", "Reviewed",
		"The review is in the conversation of the pull request.\n\n2m3s · 5 turns · $0.12 · claude-sonnet-4-5",
		"Reviewed, see the conversation",
	},
	{
		tasks.Ending{Kind: tasks.Failed, Reason: "The model is overloaded, says @ops."},
		"neutral", "Not reviewed",
		"Not reviewed: The model is overloaded, says @\u200bops.", "",
	},
	{
		tasks.Ending{Kind: tasks.TimedOut, Limit: "2h"},
		"neutral", "Not reviewed",
		"Not reviewed: Stopped at the time limit of 2h. Ask for something smaller, or ask again to continue from here.",
		"",
	},
	{
		tasks.Ending{Kind: tasks.Stalled, Limit: "15m"},
		"neutral", "Not reviewed",
		"Not reviewed: Stopped because the agent showed no activity for 15m. Ask again to continue.", "",
	},
	{
		tasks.Ending{Kind: tasks.Cancelled, By: "alice"},
		"cancelled", "Not reviewed",
		"Not reviewed: Stopped by alice. Ask again to continue.", "",
	},
	{
		tasks.Ending{Kind: tasks.Superseded, Reason: "Superseded by abc1234."},
		"neutral", "Not reviewed",
		"Not reviewed: Superseded by abc1234.", "",
	},
	{
		tasks.Ending{Kind: tasks.Refused, Reason: "Superseded by abc1234."},
		"neutral", "Not reviewed",
		"Not reviewed: Superseded by abc1234.", "",
	},
	{
		tasks.Ending{Kind: tasks.Lost},
		"neutral", "Not reviewed",
		"Not reviewed: The workers running this died several times, so errand gave up. The cost is unknown. Ask an operator to check the log.", "",
	},
	{
		tasks.Ending{Kind: tasks.Refused, Reason: strings.Repeat("ä", 200)},
		"neutral", "Not reviewed",
		"Not reviewed: " + strings.Repeat("ä", 200), "Not reviewed: " + strings.Repeat("ä", 125) + "…",
	},
}

func TestCheckRun(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	for i, c := range endings {
		n := w.open(func(pr *githubfake.PR) { pr.Head = fmt.Sprint(i) })
		task, sha := w.task(n, i), w.pull(n).HeadSHA
		r := w.report(task)
		r.Update(use("Reading main.go"))
		w.wait(func() bool { return len(w.hub.CheckRuns(repo, sha)[0].History) == 2 })
		c.e.At = ended
		if err := r.Close(t.Context(), c.e); err != nil {
			t.Fatal(err)
		}
		final := githubfake.CheckState{
			Status: "completed", Conclusion: c.conclusion, Title: c.title, Summary: c.summary,
		}
		want := []githubfake.CheckRun{{
			SHA: sha, Name: "errand", ExternalID: task.ID, DetailsURL: "https://errand.example/tasks/" + task.ID,
			CompletedAt: ended,
			CheckState:  final, History: []githubfake.CheckState{
				{Status: "in_progress", Title: "Reviewing", Summary: "The agent is about to start."},
				{Status: "in_progress", Title: "Reviewing", Summary: "Reading main.go"},
				final,
			},
		}}
		if diff := cmp.Diff(want, w.hub.CheckRuns(repo, sha),
			cmpopts.IgnoreFields(githubfake.CheckRun{}, "ID", "StartedAt"), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s", c.e.Kind, diff)
		}
		if got := w.hub.Statuses(repo, sha); len(got) > 0 {
			t.Errorf("an App set %+v", got)
		}
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	w := withToken(t)
	for i, c := range endings {
		n := w.open(func(pr *githubfake.PR) { pr.Head = fmt.Sprint(i) })
		task, sha := w.task(n, i), w.pull(n).HeadSHA
		r := w.report(task)
		r.Update(use("Reading main.go"))
		w.wait(func() bool { return len(w.hub.Statuses(repo, sha)) == 2 })
		c.e.At = ended
		for range 2 { // the second finds that nothing is left to say
			if err := r.Close(t.Context(), c.e); err != nil {
				t.Fatal(err)
			}
		}
		status := func(state, description string) githubfake.Status {
			return githubfake.Status{
				SHA: sha, Context: "errand", State: state, Description: description,
				TargetURL: "https://errand.example/tasks/" + task.ID, User: "errand",
			}
		}
		state := "error" // there is no review
		if slices.Contains([]tasks.EndingKind{tasks.Answered, tasks.Superseded}, c.e.Kind) {
			state = "success"
		}
		final := status(state, std.Or(c.status, c.summary))
		want := []githubfake.Status{status("pending", "Reviewing"), status("pending", "Reading main.go"), final}
		if diff := cmp.Diff(want, w.hub.Statuses(repo, sha),
			cmpopts.IgnoreFields(githubfake.Status{}, "ID", "CreatedAt")); diff != "" {
			t.Errorf("%s: %s", c.e.Kind, diff)
		}
		if got := w.hub.CheckRuns(repo, sha); len(got) > 0 {
			t.Errorf("a token made %+v", got)
		}
	}
}

// lights lists the signs at a commit, whichever they are: one line each, the newest last.
func (w *world) lights(sha string) (all []string) {
	for _, c := range w.hub.CheckRuns(repo, sha) {
		if c.Name == "errand" {
			all = append(all, strings.Join(strings.Fields(c.Status+" "+c.Conclusion+" "+c.ExternalID), " "))
		}
	}
	for _, s := range w.hub.Statuses(repo, sha) {
		if s.Context == "errand" {
			all = append(all, s.State+" "+s.TargetURL[strings.LastIndexAny(s.TargetURL, "#/")+1:])
		}
	}
	return all
}

// Open in another process finds the light of the first, among those of others and over several pages.
func TestLightIsFoundAgain(t *testing.T) {
	both(t, func(w *world) {
		n := w.open()
		task, later, sha := w.task(n, 0), w.task(n, 1), w.pull(n).HeadSHA
		// Statuses are listed by age, check runs the newest first: either way ours is on the second page.
		if !w.src.forge.IsApp() {
			w.fill(must(subject.Of(task)))
		}
		w.report(task)
		if w.src.forge.IsApp() {
			w.fill(must(subject.Of(task)))
		}
		before := len(w.hub.Calls("POST /repos/{o}/{r}/check-runs")) + len(w.hub.Calls("POST /repos/{o}/{r}/statuses/{sha}"))
		again, err := w.source(func(c *config) { *c = w.conf }).Open(w.Context(), task)
		if err != nil {
			w.Fatal(err)
		}
		if after := len(w.hub.Calls("POST /repos/{o}/{r}/check-runs")) + len(w.hub.Calls("POST /repos/{o}/{r}/statuses/{sha}")); after != before {
			w.Errorf("began %d more", after-before)
		}
		e := tasks.Ending{Kind: tasks.Refused, Reason: "No.", At: ended}
		if err := again.Close(w.Context(), e); err != nil {
			w.Fatal(err)
		}
		w.close(task, e) // as after a lost answer: found as it was left
		w.report(later)
		want := []string{"completed neutral " + task.ID, "in_progress " + later.ID}
		if !w.src.forge.IsApp() {
			want = []string{"pending " + task.ID, "error " + task.ID, "pending " + later.ID}
		}
		ours := slices.DeleteFunc(w.lights(sha), func(l string) bool { return strings.Contains(l, "ci/") })
		if diff := cmp.Diff(want, ours); diff != "" {
			w.Error(diff)
		}
		if !w.src.forge.IsApp() {
			return
		}
		for _, c := range w.hub.CheckRuns(repo, sha) {
			if c.ExternalID == task.ID && len(c.History) != 3 { // begun, ended, ended
				w.Errorf("history %+v", c.History)
			}
		}
	})
}

// A task that is tried again shows that it runs.
func TestLightRunsAgain(t *testing.T) {
	both(t, func(w *world) {
		n := w.open()
		task, sha := w.task(n, 0), w.pull(n).HeadSHA
		w.close(task, tasks.Ending{Kind: tasks.Failed, At: ended})
		w.report(task).Update(use("Reading"))
		w.wait(func() bool {
			all := w.lights(sha)
			return strings.HasPrefix(all[len(all)-1], "in_progress") || strings.HasPrefix(all[len(all)-1], "pending")
		})
	})
}

// Without a console the light leads to the pull request, and still tells tasks apart.
func TestLightWithoutConsole(t *testing.T) {
	t.Parallel()
	w := withToken(t, func(c *config) { c.ConsoleURL = "" })
	n := w.open()
	task := w.task(n, 0)
	w.report(task)
	r := w.report(task).(*report)
	_ = r.Wait(t.Context(), strings.Repeat("@", 200)) // each one is made harmless, which makes it longer
	got := w.hub.Statuses(repo, w.pull(n).HeadSHA)
	if len(got) != 2 || len([]rune(got[1].Description)) != hub.MaxStatus {
		t.Errorf("%+v\n%s", got, w.logs)
	}
	if want := w.hub.URL() + "/acme/api/pull/1#" + task.ID; got[0].TargetURL != want {
		t.Errorf("got %s, want %s", got[0].TargetURL, want)
	}
}

// If GitHub allows no indicator, the answer should still be posted; if GitHub is unavailable, Open should be retried.
func TestLightRefused(t *testing.T) {
	both(t, func(w *world) {
		route := "POST /repos/{o}/{r}/check-runs"
		if !w.src.forge.IsApp() {
			route = "POST /repos/{o}/{r}/statuses/{sha}"
		}
		n := w.open()
		task := w.task(n, 0)
		w.hub.Fail(route, githubfake.Failure{Status: 502})
		if _, err := w.src.Open(w.Context(), task); err == nil {
			w.Error("opened on a 502")
		}
		w.hub.Fail(route, githubfake.Failure{Status: 403, Body: `{"message":"Resource not accessible"}`})
		r := w.report(task)
		r.Update(use("Reading"))
		if err := r.Close(w.Context(), answered("Fine.")); err != nil || len(w.hub.Comments(repo, n)) != 1 {
			w.Errorf("%v, %d comments", err, len(w.hub.Comments(repo, n)))
		}
		if got := strings.Count(w.logs.String(), "report without check"); got != 1 {
			w.Errorf("said %d times:\n%s", got, w.logs)
		}
	})
}

// An update that fails is complained about once and changes nothing else.
func TestUpdateFails(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	n := w.open()
	r := w.report(w.task(n, 0)).(*report)
	const route = "PATCH /repos/{o}/{r}/check-runs/{id}"
	w.hub.Fail(route, githubfake.Failure{Status: 500, Times: 2})
	before := len(w.hub.Calls(route))
	l := thread.ShowLatest(t.Context(), time.Millisecond, r.log, r.Wait)
	l.Put("one")
	w.wait(func() bool { return len(w.hub.Calls(route)) == before+3 }) // the last one succeeds
	if err := l.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if got := strings.Count(w.logs.String(), "show progress"); got != 1 {
		t.Errorf("said %d times:\n%s", got, w.logs)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	l = thread.ShowLatest(ended, time.Millisecond, r.log, r.Wait) // the worker stops: no complaint
	l.Put("two")
	if err := l.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if got := strings.Count(w.logs.String(), "show progress"); got != 1 {
		t.Errorf("said %d times:\n%s", got, w.logs)
	}
	if err := r.Close(t.Context(), answered("Fine.")); err != nil {
		t.Error(err)
	}
}

// The light ends after the comment, and its failing lets Close be called again.
func TestLightEndsLast(t *testing.T) {
	both(t, func(w *world) {
		n := w.open()
		task, sha := w.task(n, 0), w.pull(n).HeadSHA
		r := w.report(task)
		route, last := "PATCH /repos/{o}/{r}/check-runs/{id}", "completed neutral"
		if !w.src.forge.IsApp() {
			route, last = "POST /repos/{o}/{r}/statuses/{sha}", "success"
		}
		w.hub.Fail(route, githubfake.Failure{Status: 500})
		if err := r.Close(w.Context(), answered("Fine.")); err == nil || len(w.hub.Comments(repo, n)) != 1 {
			w.Errorf("%v, %d comments", err, len(w.hub.Comments(repo, n)))
		}
		if err := r.Close(w.Context(), answered("Fine.")); err != nil {
			w.Error(err)
		}
		if all := w.lights(sha); !strings.HasPrefix(all[len(all)-1], last+" ") ||
			w.hub.Comments(repo, n)[0].Edits != 0 {
			w.Errorf("%v, %+v", all, w.hub.Comments(repo, n))
		}
		// A permanent refusal should end the retries.
		w.hub.Fail(route, githubfake.Failure{Status: 422, Times: -1})
		e := tasks.Ending{Kind: tasks.Cancelled, At: ended.Add(time.Second)}
		if err := r.Close(w.Context(), e); err != nil || !strings.Contains(w.logs.String(), "end check") {
			w.Errorf("%v\n%s", err, w.logs)
		}
	})
}

// fill gives a commit more check runs or statuses of others than a page holds.
func (w *world) fill(o subject.Origin) {
	w.Helper()
	gh := must(w.src.api.Reach(w.Context(), o.Ref)).GH
	for i := range 101 {
		var err error
		name := fmt.Sprintf("ci/%d", i)
		if !w.src.forge.IsApp() {
			_, _, err = gh.Repositories.CreateStatus(w.Context(), "acme", "api", o.Head,
				&github.RepoStatus{State: new("success"), Context: &name})
		} else {
			_, _, err = gh.Checks.CreateCheckRun(w.Context(), "acme", "api",
				github.CreateCheckRunOptions{Name: "errand", HeadSHA: o.Head, ExternalID: &name})
		}
		if err != nil {
			w.Fatal(err)
		}
	}
}

// Our ID in another App's check run is a coincidence or an attempt to take it over.
func TestCheckRunOfAnotherApp(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	n := w.open()
	task := w.task(n, 0)
	w.hub.Fail("GET /repos/{o}/{r}/commits/{ref}/check-runs", githubfake.Failure{
		Status: 200, Body: `{"total_count":1,"check_runs":[{"id":9,"name":"errand","external_id":"` + task.ID +
			`","app":{"id":78}}]}`,
	})
	w.report(task)
	if got := w.lights(w.pull(n).HeadSHA); len(got) != 1 {
		t.Errorf("got %v", got)
	}
}
