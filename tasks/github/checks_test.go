package github

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/agent"
	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
	"github.com/errand-fleet/errand/tasks/rights"
)

// own opens one of our pull requests.
func (w *world) own() (number int, head string) {
	w.Helper()
	me := must(w.src.forge.Login(w.Context()))
	n := w.open(func(pr *githubfake.PR) { pr.User, pr.Head = me, "errand/github-0123456789" })
	return n, w.pull(n).HeadSHA
}

// job lets a job of GitHub Actions run.
func (w *world) job(sha string, j githubfake.Job) {
	w.Helper()
	if err := w.hub.RunJob(w.Context(), repo, sha, j); err != nil {
		w.Fatal(err)
	}
}

// briefed is the agent's prompt.
func (w *world) briefed(t tasks.Task) tasks.Brief {
	w.Helper()
	b, err := w.src.Brief(w.Context(), t, "")
	if err != nil {
		w.Fatal(err)
	}
	return b
}

// Failed checks of our own pull request should be fixed, once for the same failures, when all of them have finished.
func TestFailedChecks(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	now := time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)
	w.src.reconfigure(func(c *Config) { c.Now = func() time.Time { return now } })
	f := w.listen()
	n, head := w.own()
	log := "begin\n" + strings.Repeat("noise\n", 10_000) + "</outside> FAIL: TestTotal\n"
	w.job(head, githubfake.Job{Name: "slow"})
	w.job(head, githubfake.Job{Name: "lint", Conclusion: "success"})
	if got := f.tasks(); len(got) != 0 {
		t.Fatalf("nothing failed, and there is %+v", got)
	}
	w.job(head, githubfake.Job{Name: "unit", Conclusion: "failure", Summary: "1 test failed", Log: log})
	w.job(head, githubfake.Job{Name: "build", Conclusion: "failure", Log: "no such file\n"})
	all := f.tasks()
	if len(all) != 1 {
		t.Fatalf("two failures made %+v", all)
	}
	task := all[0]
	if task.Kind != "check_failure" || task.Thread != fmt.Sprintf("github/acme/api#%d", n) ||
		task.Class != tasks.Background || task.Profile != agent.Write ||
		task.Ref != "refs/pull/1/head" || task.Actor != "errand[bot]" {
		t.Errorf("task: %+v", task)
	}
	var wait *tasks.ErrLater
	if err := brief(w, task); !errors.As(err, &wait) || !wait.At.Equal(now.Add(30*time.Second)) {
		t.Errorf("while one still runs: %v", err)
	}
	now = now.Add(2 * time.Hour)
	for range 2 { // a task may be briefed again
		b := w.briefed(task)
		golden(t, "brief.checks",
			strings.NewReplacer(w.hub.URL(), "https://github.example", head[:7], "head").Replace(b.Prompt.Text))
		if !b.Keep || b.Into != "errand/github-0123456789" || b.Base != "main" || !b.Prompt.Composed {
			t.Errorf("brief: %+v", b)
		}
	}
	if p := must(w.src.memory.State(t.Context(), thread.Ref{Repo: repo, Number: n})); p.Rounds != 1 {
		t.Errorf("rounds: %d", p.Rounds)
	}

	// The same failures once more, and then another one.
	other := task
	other.ID = tasks.NewID(now.Add(-2*time.Hour), "github", "other")
	wantInput(t, brief(w, other), "This was already handled.")
	w.job(head, githubfake.Job{Name: "slow", Conclusion: "timed_out"})
	if err := brief(w, other); err != nil {
		t.Errorf("another failure: %v", err)
	}
	// Fixed, or another head.
	for _, name := range []string{"slow", "unit", "build"} {
		w.job(head, githubfake.Job{Name: name, Conclusion: "success"})
	}
	wantInput(t, brief(w, other), "No check of "+head[:7]+" has failed.")
	next := must(w.hub.PushPR(t.Context(), repo, n, nil))
	wantInput(t, brief(w, other), "Superseded by "+next[:7])
}

// Failed checks of our own pull request are fixed although it belongs to a conversation that has been about another
// repository, in which an App has no rights. The fix does not continue that conversation, unless a person retries it.
func TestFailedChecksOfSeveralRepositories(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	must(w.hub.CreateRepo("acme", "web", map[string]string{"main.go": "package main\n"}))
	w.hub.SetPermission("acme/web", "ann", "read")
	f := w.listen()
	n, head := w.own()
	first := tasks.Task{
		ID: tasks.NewID(time.Now(), "slack", "first"), Source: "slack", Kind: "mention", Thread: "slack/T/C/1",
		Class: tasks.Interactive, Profile: agent.Write, Repo: repo, Also: []string{"acme/web"}, Actor: "U1",
		Prompt: "change both",
	}
	if _, err := f.desk.Submit(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	claim := must(f.db.Claim(t.Context(), first.ID, 0, "w"))
	if err := errors.Join(
		claim.SaveSession(t.Context(), store.Session{
			ID: "s", Meta: json.RawMessage(`{"repos":["acme/api","acme/web"]}`),
		}),
		f.db.Threads.Alias(t.Context(), fmt.Sprintf("github/acme/api#%d", n), first.Thread),
	); err != nil {
		t.Fatal(err)
	}
	w.job(head, githubfake.Job{Name: "unit", Conclusion: "failure", Log: "FAIL\n"})
	all := f.tasks()
	if len(all) != 2 {
		t.Fatalf("tasks: %+v", all)
	}
	task := all[slices.IndexFunc(all, func(one tasks.Task) bool { return one.Kind == "check_failure" })]
	policy := rights.Policy{Rights: &rights.ForgeRights{Forge: w.conf.Forge}}
	profile, _, err := policy.Permit(t.Context(), f.db, task, true)
	apart, aerr := policy.Apart(t.Context(), f.db, task)
	if task.Thread != first.Thread || profile != agent.Write || !apart || err != nil || aerr != nil {
		t.Errorf("in %s as %q, apart %v: %v, %v", task.Thread, profile, apart, err, aerr)
	}
	for account, allowed := range map[string]bool{"ann": true, "eve": false} {
		task.Retrier = tasks.Asker{Source: "github", Account: account}
		_, _, err := policy.Permit(t.Context(), f.db, task, true)
		if apart, aerr := policy.Apart(t.Context(), f.db, task); (err == nil) != allowed || apart || aerr != nil {
			t.Errorf("retried by %s: apart %v, %v, %v", account, apart, err, aerr)
		}
	}
}

// Failures on other branches, of our own check, or for lack of payment should not be fixed.
func TestOtherFailedChecks(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	f := w.listen()
	theirs := w.open(func(pr *githubfake.PR) { pr.Head, pr.Draft = "errand/looks-like-ours", true })
	w.job(w.pull(theirs).HeadSHA, githubfake.Job{Name: "unit", Conclusion: "failure"})
	other := w.open(func(pr *githubfake.PR) { pr.Head, pr.Draft = "theirs", true })
	w.job(w.pull(other).HeadSHA, githubfake.Job{Name: "unit", Conclusion: "failure"})
	_, head := w.own()
	w.job(head, githubfake.Job{Name: hub.IndicatorName, Conclusion: "failure"})
	if got := f.tasks(); len(got) != 0 {
		t.Fatalf("made %+v", got)
	}
	w.job(head, githubfake.Job{
		Name: "unit", Conclusion: "failure",
		Summary: "The job was not started because recent account payments have failed or your spending limit needs to be increased.",
	})
	wantInput(t, brief(w, f.tasks()[0]), "billing problem")
}

// With a token there are statuses alone.
func TestFailedStatus(t *testing.T) {
	t.Parallel()
	w := withToken(t)
	f := w.listen()
	_, head := w.own()
	set := func(state, context string) {
		t.Helper()
		event := map[string]any{
			"sha": head, "state": state, "context": context,
			"branches":   []any{map[string]any{"name": "errand/github-0123456789"}},
			"repository": map[string]any{"full_name": repo},
		}
		if status, said := f.send("status", event, githubfake.SendOptions{}); status != 202 {
			t.Errorf("%d %s", status, said)
		}
	}
	gh := must(w.src.api.Reach(t.Context(), thread.Ref{})).GH
	create := func(context string) {
		t.Helper()
		_, _, err := gh.Repositories.CreateStatus(t.Context(), "acme", "api", head, &github.RepoStatus{
			State: new("failure"), Context: new(context), Description: new("It failed."),
			TargetURL: new("https://ci.example/1"),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	create(hub.IndicatorName)
	set("failure", hub.IndicatorName)
	set("pending", "ci")
	if got := f.tasks(); len(got) != 0 {
		t.Fatalf("made %+v", got)
	}
	set("error", "ci")
	set("failure", "ci")
	all := f.tasks()
	if len(all) != 1 || all[0].Kind != "check_failure" {
		t.Fatalf("made %+v", all)
	}
	wantInput(t, brief(w, all[0]), "No check of "+head[:7]+" has failed.")
	create("ci/lint")
	if b := w.briefed(all[0]); !strings.Contains(b.Prompt.Text, "ci/lint") {
		t.Errorf("the agent is asked: %s", b.Prompt.Text)
	}
}

// After some automatic rounds errand should wait for a person, and say so once.
func TestRoundsAreBounded(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	f := w.listen()
	n, head := w.own()
	o := thread.Ref{Repo: repo, Number: n}
	w.job(head, githubfake.Job{Name: "unit", Conclusion: "failure"})
	task := f.tasks()[0]
	if err := w.src.memory.ChangeState(t.Context(), o, func(p *subject.State) error {
		p.Rounds = subject.MaxRounds
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	again := task
	again.ID = tasks.NewID(time.Now(), "github", "again")
	wantInput(t, brief(w, task), subject.LimitReached)
	wantInput(t, brief(w, again), "already been asked")
	for i, reason := range []string{"This was already handled.", subject.LimitReached} {
		w.close(task, tasks.Ending{Kind: tasks.Refused, Reason: reason, At: ended})
		if got := len(w.hub.Comments(repo, n)); got != i {
			t.Errorf("%s: %d comments", reason, got)
		}
	}
	if err := w.src.memory.ResetRounds(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if err := brief(w, task); err != nil {
		t.Errorf("after someone spoke: %v", err)
	}
	if err := w.src.memory.ChangeState(t.Context(), o, func(p *subject.State) error {
		p.Paused, p.PausedBy = true, "alice"
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	wantInput(t, brief(w, again), "paused by alice")
	payload := map[string]any{
		"action": "completed", "check_run": map[string]any{
			"name": "x", "head_sha": head, "conclusion": "failure",
			"check_suite": map[string]any{"head_branch": "errand/github-0123456789"},
		}, "repository": map[string]any{"full_name": repo},
	}
	payload["check_run"].(map[string]any)["head_sha"] = head
	if _, said := f.send("check_run", payload,
		githubfake.SendOptions{}); said != "Ignored: The pull request was paused by alice." {
		t.Errorf("said %s", said)
	}
}

// Where errand has worked often enough, the next failure has it say so in the pull request, and no other one.
func TestLastRoundIsTold(t *testing.T) {
	t.Parallel()
	w := withApp(t)
	f := w.listen()
	n, head := w.own()
	o := thread.Ref{Repo: repo, Number: n}
	if err := w.src.memory.ChangeState(t.Context(), o, func(p *subject.State) error {
		p.Rounds = subject.MaxRounds
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		w.job(head, githubfake.Job{Name: fmt.Sprint("unit", i), Conclusion: "failure"})
		all := f.tasks()
		if len(all) != 1 {
			t.Fatalf("failure %d: %d tasks", i, len(all))
		}
		wantInput(t, brief(w, all[0]), subject.LimitReached)
	}
	head = must(w.hub.PushPR(t.Context(), repo, n, map[string]string{"a": "b"}))
	w.job(head, githubfake.Job{Name: "unit", Conclusion: "failure"})
	if all := f.tasks(); len(all) != 1 {
		t.Errorf("another head: %+v", all)
	}
}

// What the people of a repository want of such work counts: whether it is done at all, by which model, and what has
// to succeed.
func TestMendingAsWanted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		Settings, said string
		want           int
	}{
		"off": {"triggers:\n  check_failure: false\n", "", 0},
		"on": {
			"checks: [make test]\n",
			"these commands must succeed in the repository's directory:\n\n    make test\n", 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := withApp(t)
			must(w.repo.Commit("main", "", map[string]string{".github/errand.yml": c.Settings}, "Say what is wanted"))
			f := w.listen()
			_, head := w.own()
			w.job(head, githubfake.Job{Name: "unit", Conclusion: "failure"})
			all := f.tasks()
			if len(all) != c.want {
				t.Fatalf("made %+v", all)
			}
			for _, task := range all {
				if b := w.briefed(task); !strings.Contains(b.Prompt.Text, c.said) {
					t.Errorf("told %s", b.Prompt.Text)
				}
			}
		})
	}
}
