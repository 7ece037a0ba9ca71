package github

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/agent"
	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/tasks/github/autofix"
	"github.com/errand-fleet/errand/tasks/github/subject"
)

// looker is a front door that polls only on request, some time later by its clock.
func looker(t *testing.T, more ...func(*config)) (f front, look func(time.Duration)) {
	t.Helper()
	begun := time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)
	var passed atomic.Int64 // what follows an event asks for the time beside the test
	clock := func() time.Time { return begun.Add(time.Duration(passed.Load())) }
	w := newWorld(t, githubfake.Config{Now: clock}, append(more, func(c *config) {
		c.Hub.Token, c.Now = "ghp_test", clock
	}))
	f = w.listen()
	w.src.reconfigure(func(c *Config) { c.Repositories = []string{repo} })
	f.interpret()
	return f, func(d time.Duration) {
		t.Helper()
		passed.Add(int64(d))
		if err := w.src.newPoller(f.desk).pollIfDue(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// A push during an outage should be reviewed. Work known from events should not be repeated, and work from before
// errand should be left.
// verdict sets the commit status with which a review ends.
func (f front) verdict(sha string) {
	f.Helper()
	gh := must(f.src.forge.Client(f.Context(), repo, 0))
	_, _, err := gh.Repositories.CreateStatus(f.Context(), "acme", "api", sha, &github.RepoStatus{
		State: new("success"), Context: new(hub.IndicatorName), Description: new("Not reviewed: stopped by ann."),
		TargetURL: new("https://errand.example/tasks/1"),
	})
	if err != nil {
		f.Fatal(err)
	}
}

func TestMissedEvents(t *testing.T) {
	t.Parallel()
	f, look := looker(t)
	f.hub.Deliver("")
	f.open(func(pr *githubfake.PR) { pr.Head = "old" })
	look(time.Hour)
	if got := f.tasks(); len(got) != 0 {
		t.Fatalf("the first look made %+v", got)
	}
	f.hub.Deliver(f.url)
	told := f.open(func(pr *githubfake.PR) { pr.Head = "told" })
	f.hub.Deliver("")
	forgotten := f.open(func(pr *githubfake.PR) { pr.Head = "forgotten" }) // with the record of its review
	f.verdict(f.pull(forgotten).HeadSHA)
	missed := f.open(func(pr *githubfake.PR) { pr.Head = "missed" })
	f.open(func(pr *githubfake.PR) { pr.Head, pr.Draft = "draft", true })
	f.open(func(pr *githubfake.PR) { pr.Head, pr.Fork, pr.User = "theirs", true, "stranger" })
	look(time.Minute)
	if got := f.tasks(); len(got) != 1 {
		t.Fatalf("before it was due there are %+v", got)
	}
	for range 2 {
		look(DefaultPollEvery)
		if got := f.heads(time.Time{}); len(got) != 2 || !strings.HasPrefix(got[0], f.pull(told).HeadSHA) ||
			!strings.HasPrefix(got[1], f.pull(missed).HeadSHA) {
			t.Fatalf("reviewed: %v", got)
		}
	}
	// A missed push should replace the running review, and its late event should change nothing.
	head := must(f.hub.PushPR(t.Context(), repo, told, map[string]string{"a": "b"}))
	look(DefaultPollEvery)
	f.hub.Deliver(f.url)
	f.send("pull_request", must(f.hub.Payload("synchronize", repo, told, "octocat")), githubfake.SendOptions{})
	got := f.heads(time.Time{})
	if len(got) != 2 || !strings.HasPrefix(got[0], f.pull(missed).HeadSHA) || !strings.HasPrefix(got[1], head) {
		t.Errorf("reviewed: %v", got)
	}
	// The next poll should cover what a failed one missed.
	f.hub.Deliver("")
	late := f.open(func(pr *githubfake.PR) { pr.Head = "late" })
	f.hub.Fail("GET /repos/{o}/{r}/pulls", githubfake.Failure{Status: 500})
	if err := lookAgain(f); err == nil || len(f.tasks()) != 2 {
		t.Errorf("%v, %d tasks", err, len(f.tasks()))
	}
	look(time.Hour)
	if got := f.heads(time.Time{}); len(got) != 3 || !strings.HasPrefix(got[2], f.pull(late).HeadSHA) {
		t.Errorf("reviewed: %v", got)
	}
}

// Where webhooks are missing or were lost, a poll finds the label that approves a fork's head, once, and only for that
// head.
func TestMissedForkLabel(t *testing.T) {
	t.Parallel()
	for name, quick := range map[string]bool{"webhook lost": false, "polled": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, look := looker(t)
			if quick {
				var quietly func(time.Duration) []githubfake.Call
				f, quietly = polled(t)
				look = func(d time.Duration) { t.Helper(); quietly(d) }
			}
			f.hub.SetPermission(repo, "ben", "write")
			look(time.Hour)
			n := f.fork("theirs")
			f.hub.Deliver("")
			look(DefaultPollEvery)
			label := func(login string) {
				t.Helper()
				if err := f.hub.UnlabelPR(repo, n, DefaultForkLabel); err != nil {
					t.Fatal(err)
				}
				f.label(n, DefaultForkLabel, login)
			}
			f.label(n, DefaultForkLabel, "dependabot[bot]")
			look(DefaultPollEvery)
			label("errand")
			look(DefaultPollEvery)
			if all := f.tasks(); len(all) != 0 {
				t.Fatalf("before a person's label: %+v", all)
			}
			label("ben")
			for range 3 { // the second one covers the time of the label again
				look(DefaultPollEvery)
			}
			task := f.only()
			if task.Actor != "ben" || task.Profile != agent.Untrusted || task.Ref != f.pull(n).HeadSHA {
				t.Errorf("submitted %+v", task)
			}
			if err := brief(f.world, task); err != nil {
				t.Error(err)
			}
			f.label(n, "documentation", "ben") // changes the pull request while its review runs
			look(DefaultPollEvery)
			if again := f.only(); again.ID != task.ID {
				t.Errorf("another task: %s and %s", task.ID, again.ID)
			}

			label("ben")
			must(f.hub.PushPR(t.Context(), repo, n, map[string]string{"evil.go": "package main\n"}))
			for range 2 {
				look(DefaultPollEvery)
			}
			if all := f.tasks(); len(all) != 0 {
				t.Errorf("for a head that nobody has approved: %+v", all)
			}
		})
	}
}

// Redis has tasks of earlier versions, which have these words.
func TestStoredNamesOfPolls(t *testing.T) {
	t.Parallel()
	f, look := looker(t)
	look(time.Hour)
	f.hub.Deliver("")
	f.open()
	look(DefaultPollEvery)
	task := f.only()
	if action := must(subject.Of(task)).Action; action != "looked" || !strings.Contains(task.ID, "-github-look-") {
		t.Errorf("a poll made the task %s with the action %s", task.ID, action)
	}
}

// A poll does not repeat a label that an event has brought.
func TestForkLabelIsHandledOnce(t *testing.T) {
	t.Parallel()
	f, look := looker(t)
	f.hub.SetPermission(repo, "ben", "write")
	look(time.Hour)
	n := f.fork("theirs")
	f.label(n, DefaultForkLabel, "ben")
	task := f.only()
	if err := brief(f.world, task); err != nil {
		t.Error(err)
	}
	f.label(n, "documentation", "ben") // changes the pull request while its review runs
	look(DefaultPollEvery)
	look(DefaultPollEvery)
	if again := f.only(); again.ID != task.ID {
		t.Errorf("%s and %s", task.ID, again.ID)
	}
}

// withheldLabel is a front door from which GitHub withholds the event of the label on a fork, by which ben approves its
// review.
func withheldLabel(t *testing.T) (f front, look func(time.Duration), event map[string]any) {
	t.Helper()
	f, look = looker(t)
	f.hub.SetPermission(repo, "ben", "write")
	look(time.Hour)
	n := f.fork("theirs")
	look(time.Minute)
	f.hub.Deliver("")
	f.label(n, DefaultForkLabel, "ben")
	event = must(f.hub.Payload("labeled", repo, n, "ben"))
	event["label"] = map[string]any{"name": DefaultForkLabel}
	return f, look, event
}

// The event of a label that a poll has found comes late, or again: it adds nothing.
func TestForkLabelAfterItsPoll(t *testing.T) {
	t.Parallel()
	f, look, late := withheldLabel(t)
	look(DefaultPollEvery)
	task := f.only()
	f.hub.Deliver(f.url)
	f.send("pull_request", late, githubfake.SendOptions{})
	if again := f.only(); again.ID != task.ID {
		t.Errorf("%s and %s", task.ID, again.ID)
	}
}

// An event and a poll that handle a label at the same time submit one review.
func TestForkLabelDuringItsPoll(t *testing.T) {
	t.Parallel()
	const listEvents = "GET /repos/{o}/{r}/issues/{n}/events"
	f, look, event := withheldLabel(t)
	f.hub.Deliver(f.url)

	before := len(f.hub.Calls(listEvents))
	hold, done := make(chan struct{}), make(chan struct{})
	f.hub.Fail(listEvents, githubfake.Failure{Hold: hold})
	go func() { defer close(done); look(DefaultPollEvery) }()
	f.wait(func() bool { return len(f.hub.Calls(listEvents)) > before })
	f.send("pull_request", event, githubfake.SendOptions{})
	f.only()
	close(hold)
	<-done
	f.only()
}

// A label that a new head gets while a poll is still at the earlier one is left for the next poll.
func TestForkLabelAfterAPushDuringAPoll(t *testing.T) {
	t.Parallel()
	const listEvents = "GET /repos/{o}/{r}/issues/{n}/events"
	clock := githubfake.NewClock(time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC), 0)
	w := newWorld(t, githubfake.Config{Now: clock.Now},
		[]func(*config){func(c *config) { c.Hub.Token, c.Now = "ghp_test", clock.Now }})
	f := w.listen()
	w.src.reconfigure(func(c *Config) { c.Repositories = []string{repo} })
	f.hub.SetPermission(repo, "ben", "write")
	if err := lookAgain(f); err != nil {
		t.Fatal(err)
	}
	f.hub.Deliver("")
	n := f.fork("theirs")
	f.label(n, DefaultForkLabel, "dependabot[bot]") // approves nothing
	clock.Pass(time.Minute)
	hold := make(chan struct{})
	f.hub.Fail(listEvents, githubfake.Failure{Hold: hold})
	done := make(chan error, 1)
	go func() { done <- lookAgain(f) }()
	w.wait(func() bool { return len(w.hub.Calls(listEvents)) > 0 })
	head := must(f.hub.PushPR(t.Context(), repo, n, map[string]string{"fix.go": "package main\n"}))
	clock.Pass(time.Second)
	if err := f.hub.UnlabelPR(repo, n, DefaultForkLabel); err != nil {
		t.Fatal(err)
	}
	f.label(n, DefaultForkLabel, "ben")
	close(hold)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if all := f.tasks(); len(all) != 0 {
		t.Errorf("for the earlier head: %+v", all)
	}
	clock.Pass(DefaultPollEvery)
	if err := lookAgain(f); err != nil {
		t.Error(err)
	}
	if task := f.only(); task.Ref != head || task.Actor != "ben" {
		t.Errorf("submitted %+v", task)
	}
}

// lookAgain looks although it is not due.
func lookAgain(f front) error {
	if err := f.src.newPoller(f.desk).changePollState(f.Context(),
		func(l *pollState) { l.Last = time.Time{} }); err != nil {
		return err
	}
	return f.src.newPoller(f.desk).pollIfDue(f.Context())
}

// Conflicts of our own pull requests are resolved, once for a head and a base; those of others where a label says so.
func TestConflicts(t *testing.T) {
	t.Parallel()
	f, look := looker(t)
	f.hub.Deliver("")
	f.hub.SetPermission(repo, "ann", "write")
	n, _ := f.own()
	labelled := f.open(func(pr *githubfake.PR) { pr.Head = "labelled" })
	f.label(labelled, autofix.ConflictsLabel, "ann")
	f.open(func(pr *githubfake.PR) { pr.Head = "theirs" })
	look(time.Hour)
	if got := f.tasks(); len(got) != 0 {
		t.Fatalf("without conflicts there are %+v", got)
	}
	must(f.repo.Commit("main", "", map[string]string{
		"errand/github-0123456789.go": "other\n", "labelled.go": "other\n", "theirs.go": "other\n",
	}, "Collide"))
	look(time.Hour)
	all := f.tasks()
	if len(all) != 2 || all[0].Kind != "merge_conflict" || all[1].Kind != "merge_conflict" {
		t.Fatalf("made %+v", all)
	}
	for _, task := range all {
		b := f.briefed(task)
		switch o := must(subject.Of(task)); o.Number {
		case n:
			golden(t, "brief.conflict", b.Prompt.Text)
		case labelled:
			if b.Into != "labelled" {
				t.Errorf("proposed for %s", b.Into)
			}
		}
	}
	look(time.Hour)
	if got := f.tasks(); len(got) != 2 {
		t.Errorf("again: %+v", got)
	}
}

// Failed checks whose event was missed should be fixed, once.
func TestMissedChecks(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	f := w.listen()
	w.src.reconfigure(func(c *Config) { c.Repositories = []string{repo} })
	_, head := w.own()
	w.hub.Deliver("")
	w.job(head, githubfake.Job{Name: "slow"})
	w.job(head, githubfake.Job{Name: "unit", Conclusion: "failure"})
	for _, want := range []int{0, 1, 1} {
		if err := lookAgain(f); err != nil {
			t.Fatal(err)
		}
		got := f.tasks()
		if len(got) != want {
			t.Fatalf("made %+v", got)
		}
		w.job(head, githubfake.Job{Name: "slow", Conclusion: "success"})
		if want > 0 {
			f.briefed(got[0])
		}
	}
}

// One pull request that GitHub does not let us see does not hide the others; GitHub's rate limit ends the look.
func TestLookGoesOn(t *testing.T) {
	t.Parallel()
	f, look := looker(t)
	look(time.Hour)
	f.hub.Deliver("")
	f.open(func(pr *githubfake.PR) { pr.Head = "missed" })
	f.own() // which is listed first
	const route = "GET /repos/{o}/{r}/commits/{ref}/status"
	lift := f.hub.Fail(route, githubfake.Failure{
		Times: -1, Status: 429, Header: map[string][]string{"Retry-After": {"600"}},
	})
	err := lookAgain(f)
	if wait, limited := f.src.api.RetryAfter(err); !limited || wait < 9*time.Minute || len(f.tasks()) != 0 {
		t.Errorf("%v: wait %s, %d tasks", err, wait, len(f.tasks()))
	}
	lift()
	f.hub.Fail(route, githubfake.Failure{Times: -1, Status: 403})
	if err := lookAgain(f); err == nil || len(f.tasks()) != 1 {
		t.Errorf("%v, %d tasks", err, len(f.tasks()))
	}
}

// Of many front doors one looks.
func TestOneLooks(t *testing.T) {
	t.Parallel()
	f, _ := looker(t)
	turns := 0
	for _, s := range []*Source{f.src, f.source(func(c *config) { c.Hub.Token, c.Now = "ghp_test", f.src.cfg.Now })} {
		_, _, mine, err := s.newPoller(nil).claimTurn(t.Context(), s.cfg.Now())
		if err != nil {
			t.Error(err)
		}
		if mine {
			turns++
		}
	}
	if turns != 1 {
		t.Errorf("%d look", turns)
	}
}

// A front door looks by itself, from its start on.
func TestFrontDoorLooks(t *testing.T) {
	t.Parallel()
	w := withToken(t, func(c *config) { c.Repositories, c.PollEvery = []string{repo}, 10*time.Millisecond })
	f := w.listen()
	w.wait(func() bool { return len(w.hub.Calls("GET /repos/{o}/{r}/pulls")) > 0 })
	w.hub.Deliver("")
	w.open()
	w.wait(func() bool { return len(f.tasks()) == 1 })
}

// An unreadable repository or check should not cause repeated polls of others. One that is new begins
// with its first look.
func TestLookRemembersWhatItSaw(t *testing.T) {
	t.Parallel()
	f, _ := looker(t)
	first := f.src.cfg.Now()
	now := first
	f.src.reconfigure(func(c *Config) { c.Now = func() time.Time { return now } })
	f.own()
	f.hub.Fail("GET /repos/{o}/{r}/commits/{ref}/status", githubfake.Failure{Times: -1, Status: 403})
	look := func(want map[string]time.Time, repos ...string) {
		t.Helper()
		f.src.reconfigure(func(c *Config) { c.Repositories = repos })
		if err := f.src.newPoller(f.desk).pollIfDue(t.Context()); err == nil {
			t.Error("all went well")
		}
		var seen map[string]time.Time
		if err := f.src.newPoller(f.desk).changePollState(t.Context(),
			func(l *pollState) { seen = l.Seen }); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, seen); diff != "" {
			t.Errorf("seen (-want +got):\n%s", diff)
		}
	}
	look(map[string]time.Time{"acme/gone": first, repo: first}, "acme/gone", repo)
	now = now.Add(time.Hour)
	second := now
	look(map[string]time.Time{"acme/gone": first, repo: second, "acme/later": second}, "acme/gone", repo, "acme/later")
	now = now.Add(time.Hour)
	f.hub.Fail("GET /repos/{o}/{r}/issues/comments", githubfake.Failure{Status: 502})
	look(map[string]time.Time{repo: second, "acme/later": second}, repo, "acme/later")
}

// Memory that is lost during a poll should start empty.
func TestLookForgotten(t *testing.T) {
	t.Parallel()
	f, look := looker(t)
	now := f.src.cfg.Now()
	if err := f.src.newPoller(f.desk).pollAll(t.Context(), now, pollState{Seen: map[string]time.Time{repo: now}},
		false); err != nil {
		t.Error(err)
	}
	look(time.Hour)
}
