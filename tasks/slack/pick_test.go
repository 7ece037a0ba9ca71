package slack

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/errand-fleet/errand/tasks/intake"
	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/tasks/slack/render"
)

// choosing connects the workspace to a front door that works on two repositories.
func (f *frontDoor) choosing(ctx context.Context) {
	f.Helper()
	f.source = f.process(Config{Repositories: []string{"acme/api", "acme/web"}, Memory: f.store.Memos})
	f.listen(ctx, f.desk)
}

// offered waits for the menu and returns its ts.
func (f *frontDoor) offered() (ts string) {
	f.Helper()
	f.until("the menu", func() bool {
		for _, m := range f.Ephemeral(general, ann) {
			if strings.Contains(string(m.Blocks), render.ActionPick) {
				ts = m.TS
			}
		}
		return ts != ""
	})
	return ts
}

func (f *frontDoor) choose(user, ts, repo string) {
	f.Helper()
	if err := f.Choose(f.Context(), user, general, ts, render.ActionPick, repo); err != nil {
		f.Error(err)
	}
	f.settle()
}

func TestPickRepository(t *testing.T) {
	t.Parallel()
	for repo, want := range map[string]string{"acme/web": "acme/web", render.NoRepository: ""} {
		t.Run(repo, func(t *testing.T) {
			t.Parallel()
			f := newFrontDoor(t, Config{}, rights.Policy{})
			f.choosing(t.Context())
			root := f.mention("mend it")
			menu := f.offered()
			equal(t, "tasks", len(f.tasks()), 0)
			if err := f.Redeliver(t.Context(), root, slackfake.AppMention); err != nil {
				t.Fatal(err)
			}
			f.choosing(t.Context()) // another process, which shares only the store
			f.choose(ann, menu, repo)
			task := f.tasks()[0]
			equal(t, "task", []string{task.Repo, task.Prompt, task.Actor}, []string{want, "mend it", ann})
			said := f.Ephemeral(general, ann)
			equal(t, "what is left of the menu", []any{len(said), said[0].Text, said[0].Blocks == nil},
				[]any{1, workingIn(want), true})
		})
	}
}

// A second choice for the same request is answered with the repository that was chosen.
func TestPickTwice(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	f.choosing(t.Context())
	f.mention("mend it")
	menu := f.offered()
	f.choose(ann, menu, "acme/web")
	f.pick(ann, menu, f.one().ID, "acme/api")
	f.until("the word", func() bool {
		said := f.Ephemeral(general, ann)
		return strings.HasPrefix(said[len(said)-1].Text, workingIn("acme/web")+" If that is wrong, say `stop`")
	})
	equal(t, "repository", f.one().Repo, "acme/web")
}

// A request waits for a day.
func TestPickTooLate(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	f.choosing(t.Context())
	f.mention("mend it")
	menu := f.offered()
	f.source.client.now = func() time.Time { return time.Now().Add(pendingLife) }
	f.choose(ann, menu, "acme/api")
	f.told(ann, intake.Forgotten)
	equal(t, "tasks", len(f.tasks()), 0)
}

// pick chooses in the menu of a task as a user.
func (f *frontDoor) pick(user, menu, task, repo string) {
	f.Helper()
	f.source.listener.buttons.handler(press{
		action: render.ActionPick, block: render.ActionPick + "/" + task, value: repo,
		origin: origin{Team: team, Channel: general, TS: menu, User: user},
	})(f.Context())
}

// While no choice has been made, a request can be edited and deleted like one that waits.
func TestUndecidedIsChanged(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	f.choosing(t.Context())
	ts := f.mention("mend it")
	menu := f.offered()
	f.edit(ts, "<@"+bot+"> mend it well")
	f.choose(ann, menu, "acme/api")
	equal(t, "tasks", f.prompts(), []string{"mend it well"})

	ts = f.mention("never mind")
	f.until("another menu", func() bool { return len(f.Ephemeral(general, ann)) == 2 })
	menu = f.Ephemeral(general, ann)[1].TS
	f.edit(ts, "")
	f.choose(ann, menu, "acme/api")
	f.told(ann, intake.Forgotten)
	equal(t, "tasks", len(f.tasks()), 1)
}

// A menu belongs to the person who sees it and the options that it offers, and lasts for a day.
func TestPickNothing(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	f.choosing(t.Context())
	f.mention("mend it")
	menu := f.offered()
	task := origin{Channel: general, TS: f.Messages(general, "")[0].TS}.taskID()
	f.pick(bob, menu, task, "acme/api")
	f.told(bob, policy.NotYours)
	f.pick(ann, menu, task, "acme/secret")
	f.told(ann, policy.NotYours)
	if err := f.source.listener.buttons.picker.remove(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	f.choose(ann, menu, "acme/api")
	f.told(ann, intake.Forgotten)
	equal(t, "tasks", len(f.tasks()), 0)
}

// If Slack shows no menu, the requester is informed how to name the repository.
func TestPickWithoutMenu(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	f.choosing(t.Context())
	f.Fail("chat.postEphemeral", slackfake.Failure{Error: "invalid_blocks"})
	f.mention("mend it")
	f.told(ann, undecided([]string{"acme/api", "acme/web"}).Error())
}

// The edited text of a request belongs to the repository that was chosen for the old text.
func TestEditAfterTheChoice(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	f.choosing(t.Context())
	ts := f.mention("mend it")
	f.choose(ann, f.offered(), "acme/web")
	f.edit(ts, at+"mend all of it")
	f.until("the word", func() bool {
		return f.Ephemeral(general, ann)[len(f.Ephemeral(general, ann))-1].Text == replaced
	})
	equal(t, "task", []string{f.one().Prompt, f.one().Repo}, []string{"mend all of it", "acme/web"})
	f.begin()
	f.edit(ts, at+"mend most of it")
	equal(t, "correction", f.tasks()[0].Prompt, "I have edited my message. It now reads:\n\nmend most of it")
}

// A stored menu is untrusted: a person who knows its key can write there.
func TestAddressOfTheMenuIsSecret(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{})
	gone := httptest.NewServer(nil)
	gone.Close()
	w.source.listener.buttons.picker.replaceMenu(t.Context(), press{respond: gone.URL + "/ticket"}, "acme/api")
	if said := w.log.String(); !strings.Contains(said, "replace menu") || strings.Contains(said, "ticket") {
		t.Errorf("log: %s", said)
	}
}
