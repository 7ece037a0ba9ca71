package slack

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/slackfake"
	"github.com/errand-fleet/errand/tasks"
)

// home opens the app's home tab as a user and returns the texts of the view that is published for it.
func (f *frontDoor) home(user string) (list []string) {
	f.Helper()
	if err := f.OpenHome(f.Context(), user, "home"); err != nil {
		f.Fatal(err)
	}
	f.settleCalls()
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
			f := newFrontDoor(t, cfg, tasks.Policy{})
			if cfg.AppToken != "" {
				f.bySocket()
			}
			if err := f.OpenHome(t.Context(), ann, "messages"); err != nil {
				t.Error(err)
			}
			equal(t, "without tasks", f.home(ann), []string{"Your latest tasks", "You have no tasks."})
			f.say(bob, general, "", at+"sing")
			first, claim := f.running("[repo=acme/api] count <@U0BOB>\nand more")
			f.mention("wait")
			entry := func(task tasks.Task, title, state, repo string) string {
				root := mustOrigin(t, task).root()
				return fmt.Sprintf("%s\n%s\n<%s/archives/%s/p%s|Thread> · <https://e.example/tasks/%s|Log>%s · <!date^", title, state, f.URL(), general, strings.ReplaceAll(root, ".", ""), task.ID, repo)
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
			check("at first", entry(wait, "wait", "⏳ Waiting: no worker is alive", ""), entry(first, "count @U0BOB", "⏳ Working", " · acme/api"))
			f.end(first, claim, answered("Forty-two."))
			f.mention("last")
			check("again", entry(f.tasks()[0], "last", "⏳ Waiting: no worker is alive", ""), entry(wait, "wait", "⏳ Waiting: no worker is alive", ""), entry(first, "count @U0BOB", "✅ Done (2m5s)", " · acme/api"))
			equal(t, "calls", len(f.Calls("views.publish")), 3)
			equal(t, "log", f.log.String(), "")
		})
	}
}

// Only the newest tasks are shown, and what Slack refuses is logged.
func TestHomeIsBounded(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, tasks.Policy{})
	for i := range maxOwn + 2 {
		f.mention(fmt.Sprint("task ", i))
	}
	got := f.home(ann)
	equal(t, "tasks", []any{len(got), strings.HasPrefix(got[1], "task 11\n")}, []any{maxOwn + 1, true})
	f.Fail("views.publish", slackfake.Failure{Error: "not_enabled"})
	if err := f.OpenHome(t.Context(), ann, "home"); err != nil {
		t.Error(err)
	}
	f.said("publish view: not_enabled")
}
