package slack

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/intake"
	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/tasks/slack/render"
)

// carol may approve what others ask for.
const carol = "U0CAROL"

// running is a task that has been started by a worker, which the test plays.
func (f *frontDoor) running(text string) (tasks.Task, *store.Claim) {
	f.Helper()
	f.mention(text)
	return f.begin()
}

// end makes the worker end a task and post its final message, and returns the message's ts.
func (f *frontDoor) end(task tasks.Task, claim *store.Claim, e tasks.Ending) (ts string) {
	f.Helper()
	body, err := json.Marshal(e)
	if err != nil {
		f.Fatal(err)
	}
	if err := claim.End(f.Context(), body); err != nil {
		f.Fatal(err)
	}
	if err := f.open(f.source, task).Close(f.Context(), e); err != nil {
		f.Fatal(err)
	}
	posted := f.posted(task)
	return posted[len(posted)-1].TS
}

// press presses a button as a user.
func (f *frontDoor) press(user, ts, action string) {
	f.Helper()
	if err := f.Press(f.Context(), user, general, ts, action); err != nil {
		f.Error(err)
	}
}

// settle returns when all work for the presses is done.
func (f *frontDoor) settle() {
	occupy(f.source.listener)()
}

// told waits for the next ephemeral message to a user, and checks that only that user gets one.
func (f *frontDoor) told(user, want string) {
	f.Helper()
	f.until("the word to "+user, func() bool {
		said := f.Ephemeral(general, user)
		return len(said) > 0 && said[len(said)-1].Text == want
	})
}

func (f *frontDoor) state(id string) tasks.Status {
	f.Helper()
	st, err := f.desk.Status(f.Context(), id)
	if err != nil {
		f.Fatal(err)
	}
	return st
}

func TestStopButton(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{AppToken: "xapp-test", Approvers: []string{carol}}, rights.Policy{})
	f.Interactivity("")
	f.until("the connection", func() bool { return f.Sockets() == 1 })
	task, claim := f.running("count")
	r := f.open(f.source, task)
	status := f.posted(task)[0].TS

	f.press(bob, status, render.ActionStop)
	f.told(bob, policy.NotYours)
	equal(t, "cancelled by", f.state(task.ID).Cancel, "")
	equal(t, "the word's place", f.Ephemeral(general, bob)[0].ThreadTS, mustOrigin(t, task).TS)
	f.press(carol, status, render.ActionStop)
	f.told(carol, intake.Stopping)
	equal(t, "cancelled by", f.state(task.ID).Cancel, "@u0carol")

	if err := r.progress.writer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.end(task, claim, tasks.Ending{Kind: tasks.Cancelled, By: "@u0carol", At: time.Now()})
	equal(t, "status", f.status(task), "🛑 Stopped")
	if err := f.Press(t.Context(), ann, general, status, render.ActionStop); err == nil {
		t.Error("what has ended still has its button")
	}
}

// A waiting task ends with the press, and shows it only in its own messages.
func TestStopWhatWaits(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	f.mention("count")
	task := f.tasks()[0]
	f.open(f.source, task)
	status := f.posted(task)[0].TS
	f.press(ann, status, render.ActionStop)
	f.settle()
	equal(t, "ending", []any{f.state(task.ID).Ending.Kind, f.state(task.ID).Ending.By},
		[]any{tasks.Cancelled, "@u0ann"})
	f.press(ann, status, render.ActionStop) // before the message has changed
	f.told(ann, intake.HasEnded)
	equal(t, "words", len(f.Ephemeral(general, ann)), 1)
}

func TestTryAgain(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{Approvers: []string{carol}}, rights.Policy{})
	task, claim := f.running("count")
	final := f.end(task, claim, tasks.Ending{Kind: tasks.Failed, Reason: "It broke.", At: time.Now()})
	f.press(bob, final, render.ActionRetry)
	f.told(bob, policy.NotYours)
	equal(t, "state", f.state(task.ID).State, "ended")
	f.press(ann, final, render.ActionRetry)
	f.told(ann, intake.Retrying)
	equal(t, "state", f.state(task.ID).State, "waiting")
	equal(t, "signs", f.Reactions(general, mustOrigin(t, task).TS), []string{eyes})
	f.press(carol, final, render.ActionRetry)
	f.told(carol, intake.StillRunning)
}

// People who may no longer ask stop what they have asked for, and start and continue nothing by buttons. Approvers may.
func TestButtonsOfPeopleWhoMayNoLongerAsk(t *testing.T) {
	t.Parallel()
	const mayNot = "You are not on the list of people who can ask me. An operator can change that."
	removed := func(f *frontDoor) {
		f.source = f.process(Config{
			Access: Access{People: []string{bob}}, Approvers: []string{carol},
			Repositories: []string{"acme/api", "acme/web"}, Memory: f.store.Memos,
		})
		f.listen(t.Context(), f.desk)
	}
	t.Run("pick", func(t *testing.T) {
		t.Parallel()
		f := newFrontDoor(t, Config{}, rights.Policy{})
		f.choosing(t.Context())
		f.mention("mend it")
		menu := f.offered()
		removed(f)
		f.choose(ann, menu, "acme/api")
		f.told(ann, mayNot)
		equal(t, "tasks", len(f.tasks()), 0)
	})
	t.Run("answer and stop", func(t *testing.T) {
		t.Parallel()
		f := newFrontDoor(t, Config{}, rights.Policy{})
		task, claim := f.running("deploy")
		f.open(f.source, task)
		status, ts := f.posted(task)[0].TS, f.ask(task, claim, consent())
		f.press(ann, ts, render.ActionDeny)
		f.until("the dialog", func() bool { return len(f.Views(ann)) == 1 })
		removed(f)
		f.press(ann, ts, "answer/0")
		f.told(ann, mayNot)
		if err := f.Submit(t.Context(), f.Views(ann)[0], nil); err != nil {
			t.Fatal(err)
		}
		f.settle()
		equal(t, "words", len(f.Ephemeral(general, ann)), 2)
		equal(t, "answer", f.state(task.ID).Questions[0].Answer == nil, true)
		f.press(ann, status, render.ActionStop)
		f.told(ann, intake.Stopping)
	})
	t.Run("retry", func(t *testing.T) {
		t.Parallel()
		f := newFrontDoor(t, Config{}, rights.Policy{})
		task, claim := f.running("count")
		final := f.end(task, claim, tasks.Ending{Kind: tasks.Failed, Reason: "It broke.", At: time.Now()})
		removed(f)
		f.press(ann, final, render.ActionRetry)
		f.told(ann, mayNot)
		equal(t, "state", f.state(task.ID).State, "ended")
		f.press(carol, final, render.ActionRetry)
		f.told(carol, intake.Retrying)
	})
}

// A button may refer to something that is gone, or come from a version with other buttons.
func TestButtonOfNothing(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	task, _ := f.running("count")
	for _, value := range []string{"", "rm -rf", "1700000000000000-slack-c0general"} {
		ts, err := f.source.client.post(t.Context(), mustOrigin(t, task), render.Marker{Task: "x", Part: "x"},
			render.Status{State: "x"}.Message([]render.Button{
				{Text: "Stop", Action: render.ActionStop, Value: value}, {Text: "?", Action: "novel"},
			})...)
		if err != nil {
			t.Fatal(err)
		}
		f.press(ann, ts, "novel")
		f.press(ann, ts, render.ActionStop)
		f.told(ann, intake.Forgotten)
	}
}

func TestButtonWithoutRedis(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	task, _ := f.running("count")
	f.open(f.source, task)
	_, dead := newDesk(t, &redis.Options{Addr: "127.0.0.1:1"}, rights.Policy{})
	f.listen(t.Context(), dead)
	f.press(ann, f.posted(task)[0].TS, render.ActionStop)
	f.told(ann, tryLater)
}

func TestInteractionsAreSlacks(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	task, _ := f.running("count")
	f.open(f.source, task)
	body := url.Values{"payload": {`{"type":"block_actions","actions":[{"action_id":"stop","value":"` +
		task.ID + `"}]}`}}.Encode()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.door+"/slack/interactions",
		strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	equal(t, "unsigned", resp.StatusCode, http.StatusUnauthorized)

	// Presses beyond the limit are refused, and Slack shows that to the user who pressed.
	defer occupy(f.source.listener)()
	if err := f.Press(t.Context(), ann, general, f.posted(task)[0].TS, render.ActionStop); err == nil {
		t.Error("taken beyond the limit")
	}
	equal(t, "cancelled by", f.state(task.ID).Cancel, "")
}

// An interaction that cannot be read, or that belongs to another app, is acknowledged and dropped.
func TestOddInteractions(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{AppToken: "xapp-test"}, rights.Policy{}, slackfake.Config{})
	f.until("the connection", func() bool { return f.Sockets() == 1 })
	for _, payload := range []any{
		"text",
		map[string]any{"type": "shortcut"},
		map[string]any{"type": "block_actions"},
		map[string]any{"type": "block_actions", "actions": []any{map[string]any{
			"action_id": render.ActionStop, "value": "x",
		}}},
	} {
		if _, err := f.Push(t.Context(), slackfake.Interactive, payload, 0); err != nil {
			t.Errorf("%v: %v", payload, err)
		}
	}
	equal(t, "calls", f.Calls("chat.postEphemeral"), []slackfake.Call(nil))
}
