package slack

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/intake"
	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/tasks/slack/render"
)

// consent is a question that asks permission for a call.
func consent() tasks.Question {
	return tasks.Question{
		Key: "c", Text: "May I do this? Bash (it is Friday)\n\n```\nmake deploy\n```",
		Options: []string{tasks.Approve, tasks.Always, tasks.Deny},
		Consent: "Bash (it is Friday)", Until: time.Unix(1_700_003_600, 0),
	}
}

// ask makes a running task ask a question, as a worker does, and returns the ts of the message.
func (f *frontDoor) ask(task tasks.Task, claim *store.Claim, q tasks.Question) (ts string) {
	f.Helper()
	body, err := json.Marshal(q)
	if err != nil {
		f.Fatal(err)
	}
	if _, err := claim.Ask(f.Context(), q.Key, body); err != nil {
		f.Fatal(err)
	}
	if err := f.source.Ask(f.Context(), task, q); err != nil {
		f.Fatal(err)
	}
	posted := f.posted(task)
	return posted[len(posted)-1].TS
}

// heard waits for the answer to a question, and shows it as the worker does.
func (f *frontDoor) heard(task tasks.Task, claim *store.Claim, q tasks.Question) tasks.Answer {
	f.Helper()
	stored, err := claim.Await(f.Context(), q.Key)
	if err != nil {
		f.Fatal(err)
	}
	var a tasks.Answer
	if err := json.Unmarshal(stored, &a); err != nil {
		f.Fatal(err)
	}
	q.Answer = &a
	if err := f.source.Settle(f.Context(), task, q); err != nil {
		f.Fatal(err)
	}
	return a
}

// The requester and approvers choose an option by its button. The choice counts once, also if it arrives at another
// front door.
func TestAnswerByButton(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{Approvers: []string{carol}}, rights.Policy{})
	task, claim := f.running("paint it")
	q := colours()
	ts := f.ask(task, claim, q)
	f.press(bob, ts, "answer/1")
	f.told(bob, policy.NotYours)
	f.source = f.process(Config{Approvers: []string{carol}}) // which has nothing in memory
	f.listen(t.Context(), f.desk)
	f.press(carol, ts, "answer/1")
	f.settle()
	f.press(ann, ts, "answer/0") // who does not see the answer yet
	f.told(ann, "@u0carol has already answered: blue, as before")
	a := f.heard(task, claim, q)
	equal(t, "answer", []string{a.Text, a.By}, []string{q.Options[1], "@u0carol"})

	m := f.posted(task)[0]
	if !strings.Contains(string(m.Blocks), "✅ @u0carol: blue, as before") ||
		strings.Contains(string(m.Blocks), "button") {
		t.Errorf("the question shows %s", m.Blocks)
	}
	equal(t, "messages", len(f.posted(task)), 1)
	f.end(task, claim, answered("Painted."))
}

func TestApproveByButton(t *testing.T) {
	t.Parallel()
	for action, want := range map[string]string{"answer/0": tasks.Approve, "answer/1": tasks.Always} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			f := newFrontDoor(t, Config{}, rights.Policy{})
			task, claim := f.running("deploy")
			f.press(ann, f.ask(task, claim, consent()), action)
			a := f.heard(task, claim, consent())
			equal(t, "answer", []string{a.Text, a.By}, []string{want, "@u0ann"})
		})
	}
}

// A person who denies a call may give the agent a reason. Nothing is decided until the dialog is submitted.
func TestDenyWithReason(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]string{
		"": "Deny", " ok, but not on a Friday ": "Deny: ok, but not on a Friday",
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			f := newFrontDoor(t, Config{Approvers: []string{carol}}, rights.Policy{})
			task, claim := f.running("deploy")
			ts := f.ask(task, claim, consent())
			f.press(bob, ts, render.ActionDeny)
			f.told(bob, policy.NotYours)
			equal(t, "dialogs", len(f.Views(bob)), 0)
			for _, user := range []string{ann, carol} {
				f.press(user, ts, render.ActionDeny)
				f.until("the dialog", func() bool { return len(f.Views(user)) == 1 })
			}
			equal(t, "questions", len(f.state(task.ID).Questions), 1)
			if err := f.Submit(t.Context(), f.Views(ann)[0], map[string]string{render.ReasonField: typed}); err != nil {
				t.Fatal(err)
			}
			a := f.heard(task, claim, consent())
			equal(t, "answer", []string{a.Text, a.By}, []string{want, "@u0ann"})
			if err := f.Submit(t.Context(), f.Views(carol)[0], nil); err != nil {
				t.Fatal(err)
			}
			f.told(carol, "@u0ann has already answered: "+want)
			equal(t, "the word's place", f.Ephemeral(general, carol)[0].ThreadTS, mustOrigin(t, task).TS)
		})
	}
}

// If the dialog can no longer be opened, the person is asked to press again.
func TestDenyTooLate(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	task, claim := f.running("deploy")
	ts := f.ask(task, claim, consent())
	f.Fail("views.open", slackfake.Failure{Error: "expired_trigger_id"})
	f.press(ann, ts, render.ActionDeny)
	f.told(ann, tryLater)
	f.press(ann, ts, render.ActionDeny)
	f.until("the dialog", func() bool { return len(f.Views(ann)) == 1 })

	if err := claim.End(t.Context(), []byte(`{"kind":"timed_out"}`)); err != nil {
		t.Fatal(err)
	}
	f.press(ann, ts, "answer/0")
	f.told(ann, intake.NotWaiting)
}

func TestOverdueQuestion(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{})
	task := w.task("")
	for _, q := range []tasks.Question{consent(), colours()} {
		if err := w.source.Ask(t.Context(), task, q); err != nil {
			t.Fatal(err)
		}
		q.Answer = &tasks.Answer{Expired: true}
		if err := w.source.Settle(t.Context(), task, q); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []string{"⏱ Not approved in time.", "⏱ Not answered in time."} {
		if m := w.posted(task)[i]; !strings.Contains(string(m.Blocks), want) ||
			strings.Contains(string(m.Blocks), "button") {
			t.Errorf("question %d shows %s", i, m.Blocks)
		}
	}
	q := colours()
	q.Key, q.Answer = "never asked", &tasks.Answer{Text: "red", By: ann}
	equal(t, "named", render.Outcome(q, person), "✅ <@U0ANN>: red")
	if err := w.source.Settle(t.Context(), task, q); err != nil {
		t.Error(err)
	}
}
