package slack

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/tasks/taskstest"
)

// home opens the app's home tab as a user and returns the texts of the view that is published for it.
func (f *frontDoor) home(user string) (list []string) {
	f.Helper()
	if err := f.OpenHome(f.Context(), user, "home"); err != nil {
		f.Fatal(err)
	}
	view, ok := f.Home(user)
	if !ok {
		f.Fatalf("no home\nlog:\n%s", f.log)
	}
	var blocks []struct{ Text struct{ Text string } }
	if err := json.Unmarshal(view.Blocks, &blocks); err != nil {
		f.Fatal(err)
	}
	for _, b := range blocks {
		if b.Text.Text != "" {
			list = append(list, b.Text.Text)
		}
	}
	return list
}

// The home tab has a person's own tasks as they are when it is opened, those under way first.
func TestHome(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]Config{"HTTP": {}, "socket": {AppToken: "xapp-test"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg.ConsoleURL = "https://e.example"
			f := newFrontDoor(t, cfg, rights.Policy{})
			if cfg.AppToken != "" {
				f.bySocket()
			}
			if err := f.OpenHome(t.Context(), ann, "messages"); err != nil {
				t.Error(err)
			}
			equal(t, "without tasks", f.home(ann), []string{"Your latest tasks", "You have no recent tasks in Slack."})
			f.say(bob, general, "", at+"sing")
			first, claim := f.running("[repo=acme/api] count <@U0BOB>\nand more")
			f.mention("wait")
			entry := func(task tasks.Task, title, state, repo string) string {
				root := mustOrigin(t, task).root()
				return fmt.Sprintf("%s\n%s\n<%s/archives/%s/p%s|Thread> · <https://e.example/tasks/%s|Log>%s · <!date^",
					title, state, f.URL(), general, strings.ReplaceAll(root, ".", ""), task.ID, repo)
			}
			check := func(what string, want ...string) {
				t.Helper()
				got := f.home(ann)[1:]
				for i := range got {
					got[i], _, _ = strings.Cut(got[i], "<!date^")
					got[i] += "<!date^"
				}
				equal(t, what, got, want)
			}
			wait := f.tasks()[0]
			check("at first", entry(first, "Count @U0BOB", "⏳ Working", " · acme/api"),
				entry(wait, "Wait", "⏳ Waiting: no worker is alive", ""))
			f.end(first, claim, answered("Forty-two."))
			f.mention("last")
			check("again", entry(f.tasks()[0], "Last", "⏳ Waiting: no worker is alive", ""),
				entry(wait, "Wait", "⏳ Waiting: no worker is alive", ""),
				entry(first, "Count @U0BOB", "✅ Done (2m5s)", " · acme/api"))
			equal(t, "calls", len(f.Calls("views.publish")), 3)
			equal(t, "log", f.log.String(), "")
		})
	}
}

// An ended task has links to all of its pull requests.
func TestHomeHasPullRequests(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	f.mention("mend")
	task, claim := f.begin()
	f.end(task, claim, endings()["published"])
	if got, want := f.home(ann)[1],
		"|Thread> · <https://github.com/acme/api/pull/7|Pull request> · "; !strings.Contains(got, want) {
		t.Errorf("%q in %s", want, got)
	}
	f.mention("mend both")
	task, claim = f.begin()
	f.end(task, claim, endings()["together"])
	want := "|Thread> · <https://github.com/acme/api/pull/7|acme/api#7> · <https://github.com/acme/web/pull/8|acme/web#8> · "
	if got := f.home(ann)[1]; !strings.Contains(got, want) {
		t.Errorf("%q in %s", want, got)
	}
}

// Only the newest tasks are shown, and what Slack refuses is logged.
func TestHomeIsBounded(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	for i := range maxOwn + 2 {
		f.mention(fmt.Sprint("task ", i))
	}
	got := f.home(ann)
	equal(t, "tasks", []any{len(got), strings.HasPrefix(got[1], "Task 11\n")}, []any{maxOwn + 1, true})
	f.Fail("views.publish", slackfake.Failure{Error: "not_enabled"})
	if err := f.OpenHome(t.Context(), ann, "home"); err != nil {
		t.Error(err)
	}
	f.said("publish view: not_enabled")
}

// A long run is shown although more tasks than fit are newer. Tasks of the same person in other sources are not.
func TestHomeShowsWhatRuns(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{People: people.People{{Name: "ann", Slack: ann, GitHub: "ann-gh"}}})
	f.running("run for two hours")
	for i := range maxOwn + 2 {
		task, claim := f.running(fmt.Sprint("question ", i))
		f.finish(claim, answered("Yes."))
		review := tasks.Task{
			ID: tasks.NewID(time.Now(), "github", fmt.Sprint("acme-api-", i)), Source: "github", Kind: "review",
			Thread: fmt.Sprintf("github/acme/api#%d/review", i), Class: tasks.Review, Profile: agent.Read,
			Actor: "ann-gh", Prompt: "review", Repo: "acme/api", Origin: task.Origin,
		}
		if _, err := f.desk.Submit(t.Context(), review); err != nil {
			t.Fatal(err)
		}
	}
	got := f.home(ann)[1:]
	equal(t, "tasks", []any{len(got), strings.Contains(strings.Join(got, ""), "Review")}, []any{maxOwn, false})
	equal(t, "the first two", []bool{
		strings.HasPrefix(got[0], "Run for two hours\n⏳ Working"), strings.HasPrefix(got[1], "Question 11\n✅"),
	}, []bool{true, true})
	f.command(ann, general, "status")
	if said := f.word(general, ann, 1); !strings.HasPrefix(said, "“Run for two hours” has been running for ") ||
		strings.Contains(said, "\n") {
		t.Errorf("status: %s", said)
	}
}

// Slack takes 3,000 characters for a task, which text that has to be escaped reaches soon.
func TestHomeEscapes(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	task, claim := f.running(strings.Repeat("&", 500))
	q := tasks.Question{Key: "k", Text: strings.Repeat("&", 500), Until: time.Now().Add(time.Hour)}
	f.ask(task, claim, q)
	got := f.home(ann)
	equal(t, "tasks", []any{len(got), strings.Contains(got[1], strings.Repeat("&amp;", 100))}, []any{2, true})
	equal(t, "log", f.log.String(), "")
}

// People who may not ask get no page, and others get one only every few seconds.
func TestHomeIsCheap(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{}, slackfake.Config{Users: []slackfake.User{{ID: bob, Guest: true}}})
	f.source = f.process(Config{Limiter: taskstest.SlowTurns{Limiter: f.store.Memos}})
	f.listen(t.Context(), f.desk)
	for _, user := range []string{ann, bob, ann, carol} {
		if err := f.OpenHome(t.Context(), user, "home"); err != nil {
			t.Error(err)
		}
	}
	calls := f.Calls("views.publish")
	equal(t, "calls", len(calls), 2)
	for _, user := range []string{ann, carol} {
		if _, ok := f.Home(user); !ok {
			t.Errorf("%s has no page", user)
		}
	}
	equal(t, "log", f.log.String(), "")
}
