package github

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
)

// heads lists what is reviewed of which pull request, and whether the review waits for a quiet moment.
func (f front) heads(quiet time.Time) (all []string) {
	f.Helper()
	for _, t := range f.tasks() {
		all = append(all, fmt.Sprintf("%s quiet=%t", t.Ref, t.NotBefore.Equal(quiet)))
	}
	return all
}

// Of many pushes the last one is reviewed, when they have stopped; a head that is reviewed by now is left.
func TestPushesAreReviewedOnce(t *testing.T) {
	t.Parallel()
	var seconds atomic.Int64 // GitHub's clock tells events apart that are a second apart
	clock := func() time.Time { return time.Unix(1_790_000_000+seconds.Add(1), 0) }
	w := newWorld(t, githubfake.Config{Now: clock}, []func(*config){func(c *config) { c.Hub.Token = "ghp_test" }})
	now := time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)
	w.src.reconfigure(func(c *Config) { c.Now, c.Quiet = func() time.Time { return now }, time.Minute })
	f := w.listen()
	n := w.open()
	expect := func(what string, want ...string) {
		t.Helper()
		if got := f.heads(now.Add(time.Minute)); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	expect("opened", w.pull(n).HeadSHA+" quiet=false")
	first := f.tasks()[0]
	var head string
	for i := range 3 {
		head = must(w.hub.PushPR(t.Context(), repo, n, map[string]string{"a": fmt.Sprint(i)}))
		expect("pushed", head+" quiet=true")
	}
	s := must(f.desk.Status(t.Context(), first.ID))
	if s.Ending == nil || s.Ending.Kind != tasks.Superseded || s.Ending.Reason[:14] != "Superseded by " {
		t.Errorf("the first one is %+v", s)
	}
	other := w.open(func(pr *githubfake.PR) { pr.Head = "other" })
	expect("another pull request", head+" quiet=true", w.pull(other).HeadSHA+" quiet=false")

	// An event that comes late says nothing new, and one that comes again nothing at all.
	for _, d := range w.hub.Deliveries("pull_request") {
		if err := w.hub.Redeliver(t.Context(), d.GUID); err != nil {
			t.Error(err)
		}
	}
	if got := len(f.tasks()); got != 2 {
		t.Errorf("after redeliveries there are %d tasks", got)
	}
	late := must(w.hub.Payload("synchronize", repo, n, "octocat"))
	pr := late["pull_request"].(map[string]any)
	pr["updated_at"], pr["head"].(map[string]any)["sha"] = "2020-01-01T00:00:00Z", first.Ref
	if status, said := f.send("pull_request", late, githubfake.SendOptions{}); status != 202 ||
		said != "Ignored: A newer state of the pull request is known." {
		t.Errorf("late: %d %s", status, said)
	}
}

// A closed pull request or a draft should no longer be reviewed; when it is reopened it should be, unless that was
// done.
func TestClosedIsNotReviewed(t *testing.T) {
	t.Parallel()
	w := withToken(t)
	f := w.listen()
	n := w.open()
	do := func(action string, want int) {
		t.Helper()
		if err := w.hub.ChangePR(t.Context(), repo, n, action, "octocat"); err != nil {
			t.Fatal(err)
		}
		if got := len(f.tasks()); got != want {
			t.Errorf("%s: %d tasks, want %d", action, got, want)
		}
	}
	first := f.tasks()[0]
	do("converted_to_draft", 0)
	if s := must(f.desk.Status(t.Context(), first.ID)); s.Ending.Kind != tasks.Superseded ||
		s.Ending.Reason != "The pull request is a draft." {
		t.Errorf("ended as %+v", s.Ending)
	}
	do("ready_for_review", 1)
	do("closed", 0)
	do("reopened", 1)
	do("closed", 0)
	o := thread.Ref{Repo: repo, Number: n}
	if err := w.src.memory.ChangeState(t.Context(), o, func(p *subject.State) error {
		p.LastReviewed, p.LastBase = first.Ref, "main"
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	do("reopened", 0)
	// A review that is requested by name should still run, once.
	ask := must(w.hub.Payload("review_requested", repo, n, "octocat"))
	for login, want := range map[string]int{"alice": 0, "errand": 1} {
		ask["requested_reviewer"] = map[string]any{"login": login}
		for range 2 {
			f.send("pull_request", ask, githubfake.SendOptions{GUID: "asked-" + login})
		}
		if login == "errand" && len(f.tasks()) != want {
			t.Errorf("%s asked: %d tasks", login, len(f.tasks()))
		}
	}
}

// A bot's request for a review is none: two that ask and answer each other would never end.
func TestBotsRequestNoReview(t *testing.T) {
	t.Parallel()
	w := withToken(t)
	n := w.quietOpen()
	f := w.listen()
	for i, sender := range []string{"linter[bot]", "octocat"} {
		ask := must(w.hub.Payload("review_requested", repo, n, sender))
		ask["requested_reviewer"] = map[string]any{"login": "errand"}
		f.send("pull_request", ask, githubfake.SendOptions{})
		if got := len(f.tasks()); got != i {
			t.Errorf("%s asked: %d tasks", sender, got)
		}
	}
}

// A person's word stops what happens by itself.
func TestPausedIsNotReviewed(t *testing.T) {
	t.Parallel()
	w := withToken(t)
	f := w.listen()
	n := w.open(func(pr *githubfake.PR) { pr.Draft = true })
	o := thread.Ref{Repo: repo, Number: n}
	if err := w.src.memory.ChangeState(t.Context(), o, func(p *subject.State) error {
		p.Paused, p.PausedBy = true, "alice"
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	status, said := f.send("pull_request", ready(w, n), githubfake.SendOptions{})
	if status != 202 || said != "Ignored: The pull request was paused by alice." || len(f.tasks()) != 0 {
		t.Errorf("%d %s, %d tasks", status, said, len(f.tasks()))
	}
}

// ready is the event of a draft that is none any more.
func ready(w *world, n int) map[string]any {
	p := must(w.hub.Payload("ready_for_review", repo, n, "octocat"))
	p["pull_request"].(map[string]any)["draft"] = false
	return p
}
