package slack

import (
	"testing"

	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/tasks/slack/render"
)

func TestReadyForm(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"mark as ready": true, "Mark it as ready for review!": true, "please mark the PR ready": true,
		"mark this ready.": true, "mark\u00a0as\u00a0ready": true, "mark as ready and merge it": false,
		"is it ready?": false, "mark the tests as ready": false,
	} {
		if word, got := readWord(text); got != want || got && word != ready {
			t.Errorf("%q: %q, %v", text, word, got)
		}
	}
}

// published is an ending with a draft of errand's.
func published(number int) tasks.Ending {
	e := answered("Done.")
	e.Published = &tasks.Published{Work: tasks.Work{Repo: "acme/api"}, PullRequest: forge.PullRequestRef{
		Number: number, URL: "https://hub.example/4", Draft: number == 4,
	}}
	return e
}

// A button and a sentence mark the draft of a thread. A person with a known account at the forge must be able to write
// there, whether or not they asked; others must be in control of the task, if the operator does not limit them.
func TestMarkReady(t *testing.T) {
	t.Parallel()
	known := people.People{{Name: "Ann", Slack: ann, GitHub: "ann-acme"}, {Name: "Bob", Slack: bob, GitHub: "bob-acme"}}
	limits := &rights.ForgeRights{Forge: somePulls, Unmapped: policy.UnmappedAll}
	f := newFrontDoor(t, Config{Pulls: somePulls, People: known, Approvers: []string{carol}},
		rights.Policy{People: known, Rights: limits})
	root := f.mention("count")
	task, claim := f.begin()
	final := f.end(task, claim, published(4))
	f.press(ann, final, render.ActionReady)
	f.told(ann, policy.NotYours)
	f.press(bob, final, render.ActionReady)
	f.told(bob, marked)
	f.press(carol, final, render.ActionReady)
	f.told(carol, marked)
	limits.Unmapped = policy.UnmappedRead
	f.press(carol, final, render.ActionReady)
	f.told(carol,
		"I do not know your account on GitHub, so I cannot see what you may do in acme/api. An operator can add you under people: in errand.yaml.")
	f.say(ann, general, root, at+"mark as ready")
	f.lastWord(ann, 2, policy.NotYours)
	f.say(bob, general, root, at+"Please mark it as ready for review.")
	f.lastWord(bob, 2, marked)
	f.say(bob, general, "", at+"mark as ready")
	f.lastWord(bob, 3, inThread)
	equal(t, "tasks", len(f.tasks()), 1)
}

// The drafts of all repositories of a task are marked.
func TestMarkAllReady(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{Pulls: somePulls}, rights.Policy{})
	f.mention("count")
	task, claim := f.begin()
	e := published(4)
	e.Also = []*tasks.Published{published(4).Published}
	f.press(ann, f.end(task, claim, e), render.ActionReady)
	f.told(ann, markedAll)
}

// Only a draft has the button, and the forge may refuse.
func TestMarkReadyRefused(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{Pulls: somePulls}, rights.Policy{})
	root := f.mention("count")
	f.say(ann, general, root, at+"mark as ready")
	f.lastWord(ann, 1, noDraft)
	for number, want := range map[int]bool{3: false, 4: true} {
		task := tasks.Task{ID: "1-slack-x"}
		parts := render.Console(nil).Final(task, ann, published(number))
		found := false
		for _, b := range parts[len(parts)-1].Buttons {
			found = found || b.Action == render.ActionReady && b.Value == task.ID
		}
		equal(t, "button", found, want)
	}
	task, claim := f.begin()
	f.end(task, claim, published(3))
	f.say(ann, general, root, at+"mark as ready")
	f.lastWord(ann, 2, "That is not my pull request.")
}
