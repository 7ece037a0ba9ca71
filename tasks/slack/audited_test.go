package slack

import (
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/tasks/slack/render"
	"github.com/errand-fleet/errand/tasks/taskstest"
)

// pressed are the presses of each button, and what the audit log has of them. Entries end with the ID of the task.
var pressed = map[string]struct {
	act  func(f *frontDoor, task tasks.Task, claim *store.Claim)
	want []string
}{
	render.ActionStop: {func(f *frontDoor, task tasks.Task, _ *store.Claim) {
		f.open(f.source, task)
		f.press(bob, f.posted(task)[0].TS, render.ActionStop)
		f.settle()
		f.press(ann, f.posted(task)[0].TS, render.ActionStop)
	}, []string{"slack/U0BOB (u0bob) stop: 403", "slack/U0ANN (u0ann) stop: 200"}},
	render.ActionRetry: {func(f *frontDoor, task tasks.Task, claim *store.Claim) {
		f.press(ann, f.end(task, claim, tasks.Ending{Kind: tasks.Failed, Reason: "It broke.", At: time.Now()}),
			render.ActionRetry)
	}, []string{"slack/U0ANN (u0ann) retry: 200"}},
	render.ActionReady: {func(f *frontDoor, task tasks.Task, claim *store.Claim) {
		e := answered("Done.")
		e.Published = &tasks.Published{
			Work: tasks.Work{Repo: "acme/api"}, PullRequest: forge.PullRequestRef{
				Number: 4, URL: "https://hub.example/4", Draft: true,
			},
		}
		final := f.end(task, claim, e)
		f.press(bob, final, render.ActionReady)
		f.settle()
		f.press(ann, final, render.ActionReady)
	}, []string{"slack/U0BOB (u0bob) ready: 403", "slack/U0ANN (u0ann) ready: 200"}},
	render.ActionGood: {func(f *frontDoor, task tasks.Task, claim *store.Claim) {
		final := f.end(task, claim, answered("Forty-two."))
		f.press(ann, final, render.ActionGood)
		f.settle()
		f.press(ann, final, render.ActionBad)
	}, []string{"slack/U0ANN (u0ann) vote good: 200", "slack/U0ANN (u0ann) vote bad: 409"}},
	render.ActionBad: {func(f *frontDoor, task tasks.Task, claim *store.Claim) {
		f.press(bob, f.end(task, claim, answered("Forty-two.")), render.ActionBad)
	}, []string{"slack/U0BOB (u0bob) vote bad: 200"}},
	// the reason, after the vote itself
	submitted + render.ActionBad: {func(f *frontDoor, task tasks.Task, claim *store.Claim) {
		f.press(bob, f.end(task, claim, answered("Forty-two.")), render.ActionBad)
		f.settle()
		f.submit(bob, "wrong")
	}, []string{"slack/U0BOB (u0bob) vote bad: 200", "slack/U0BOB (u0bob) vote bad: 200"}},
	render.ActionPick: {func(f *frontDoor, _ tasks.Task, _ *store.Claim) {
		f.choosing(f.Context())
		f.mention("mend it")
		f.choose(ann, f.offered(), "acme/web")
	}, []string{"slack/U0ANN (u0ann) pick acme/web: 200"}},
	render.ActionAnswer: {func(f *frontDoor, task tasks.Task, claim *store.Claim) {
		f.press(ann, f.ask(task, claim, colours()), render.ActionAnswer+"/1")
	}, []string{"slack/U0ANN (u0ann) answer: 200"}},
	render.ActionDeny: {func(f *frontDoor, task tasks.Task, claim *store.Claim) { // opens a dialog
		ts := f.ask(task, claim, consent())
		f.press(bob, ts, render.ActionDeny)
		f.settle()
		f.press(ann, ts, render.ActionDeny)
	}, []string{"slack/U0BOB (u0bob) deny: 403"}},
	render.ActionAsk: {func(f *frontDoor, task tasks.Task, _ *store.Claim) { // opens a dialog
		f.shortcut(ann, general, mustOrigin(f.T, task).TS)
	}, nil},
	submitted + render.ActionAsk: {func(f *frontDoor, task tasks.Task, _ *store.Claim) { // a request is a task
		f.shortcut(ann, general, mustOrigin(f.T, task).TS)
		f.submit(ann, "more")
	}, nil},
	submitted + render.ActionDeny: {func(f *frontDoor, task tasks.Task, claim *store.Claim) {
		f.press(ann, f.ask(task, claim, consent()), render.ActionDeny)
		f.until("the dialog", func() bool { return len(f.Views(ann)) == 1 })
		if err := f.Submit(f.Context(), f.Views(ann)[0], map[string]string{render.ReasonField: "no"}); err != nil {
			f.Fatal(err)
		}
	}, []string{"slack/U0ANN (u0ann) deny: 200"}},
}

// audited compares the audit log, whose entries may end with the ID of a task.
func (f *frontDoor) audited(want []string) {
	f.Helper()
	got, err := taskstest.Audited(f.Context(), f.store)
	if err != nil {
		f.Fatal(err)
	}
	for i, line := range got {
		if at := strings.LastIndexByte(line, ' '); tasks.ValidID(line[at+1:]) &&
			tasks.SourceOf(line[at+1:]) == sourceName {
			got[i] = line[:at]
		}
	}
	equal(f.T, "audit log", got, want)
}

// A new button has to be in the table.
func TestEveryPressIsAudited(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	for action := range f.source.listener.buttons.actions() {
		row, ok := pressed[action]
		if !ok {
			t.Errorf("say in this test what the audit log has of a press of %q", action)
			continue
		}
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			f := newFrontDoor(t, Config{}, rights.Policy{})
			task, claim := f.running("count")
			f.source = f.process(Config{Pulls: somePulls})
			f.listen(t.Context(), f.desk)
			row.act(f, task, claim)
			f.settle()
			f.audited(row.want)
		})
	}
}

// The same is true for what people say: commands, answers, edits, deletions and reactions.
func TestEveryWordIsAudited(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		act  func(f *frontDoor, root string, task tasks.Task, claim *store.Claim)
		want []string
	}{
		"commands": {func(f *frontDoor, root string, task tasks.Task, claim *store.Claim) {
			f.say(bob, general, root, at+"stop")
			f.say(ann, general, root, at+"status")
			f.say(ann, general, root, at+"stop")
			f.end(task, claim, tasks.Ending{Kind: tasks.Cancelled, By: "ann", At: time.Now()})
			f.say(bob, general, root, at+"retry")
		}, []string{
			"slack/U0BOB (u0bob) stop: 403", "slack/U0ANN (u0ann) stop: 200", "slack/U0BOB (u0bob) retry: 403",
		}},
		"an answer": {func(f *frontDoor, root string, task tasks.Task, claim *store.Claim) {
			f.ask(task, claim, colours())
			f.say(ann, general, root, at+"2")
		}, []string{"slack/U0ANN (u0ann) answer: 200"}},
		"a request": {func(f *frontDoor, root string, _ tasks.Task, _ *store.Claim) {
			f.say(ann, general, root, at+"more")
		}, nil},
		"an edit": {
			func(f *frontDoor, root string, _ tasks.Task, _ *store.Claim) { f.edit(root, at+"count again") },
			[]string{"slack/U0ANN (u0ann) edit: 200"},
		},
		"a deletion": {func(f *frontDoor, root string, _ tasks.Task, _ *store.Claim) {
			f.edit(f.say(ann, general, root, at+"more"), "")
		}, []string{"slack/U0ANN (u0ann) withdraw: 200"}},
		"reactions": {func(f *frontDoor, root string, _ tasks.Task, _ *store.Claim) {
			for _, user := range []string{bob, ann} {
				if err := f.React(f.Context(), user, general, root, stopSign); err != nil {
					f.Fatal(err)
				}
			}
		}, []string{"slack/U0BOB (u0bob) stop: 403", "slack/U0ANN (u0ann) stop: 200"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFrontDoor(t, Config{}, rights.Policy{})
			root := f.say(ann, general, "", at+"count")
			task, claim := f.begin()
			row.act(f, root, task, claim)
			f.audited(row.want)
		})
	}
}
