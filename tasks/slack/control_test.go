package slack

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/intake"
	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/tasks/slack/render"
)

// begin makes a worker, which the test plays, start the newest task.
func (f *frontDoor) begin() (tasks.Task, *store.Claim) {
	f.Helper()
	task := f.tasks()[0]
	rec, err := f.store.Get(f.Context(), task.ID)
	if err != nil {
		f.Fatal(err)
	}
	claim, err := f.store.Claim(f.Context(), task.ID, rec.Delivery, "worker")
	if err != nil {
		f.Fatal(err)
	}
	return task, claim
}

func (f *frontDoor) finish(claim *store.Claim, e tasks.Ending) {
	f.Helper()
	body, err := json.Marshal(e)
	if err == nil {
		err = claim.End(f.Context(), body)
	}
	if err != nil {
		f.Fatal(err)
	}
}

// lastWord waits for the n-th ephemeral message to a user in a channel, and checks that it is the last.
func (f *frontDoor) lastWord(user string, n int, want string) {
	f.Helper()
	equal(f.T, "word to "+user, f.word(general, user, n), want)
	equal(f.T, "words to "+user, len(f.Ephemeral(general, user)), n)
}

// A direct message needs no mention, and neither does a thread with errand in it; everywhere else messages without a
// mention are ignored.
func TestUntagged(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{},
		slackfake.Config{Users: []slackfake.User{{ID: "U0GUEST", Guest: true}}})
	f.say(ann, "D0ANN", "", "directly")
	f.say(ann, general, "", "to all")
	other := f.say(ann, general, "", "another thread")
	f.say(bob, general, other, "in it")
	f.say(bob, "G0GROUP", "", "to a group")
	equal(t, "tasks", f.prompts(), []string{"directly"})
	equal(t, "who someone is", len(f.Calls("users.info")), 1)

	root := f.say(ann, general, "", at+"mentioned")
	f.say(bob, general, root, "and the tests")
	f.say(bob, general, root, "<@"+ann+"> what do you think?")
	f.say(bob, general, root, "<!subteam^S0OPS|@ops> can one of you look?")
	f.say(bob, general, root, "<!here> lunch?")
	f.say(bob, general, root, "`<@"+ann+">` is how she is mentioned")
	f.say("U0GUEST", general, root, "may I?")
	equal(t, "tasks", f.prompts(), []string{
		"`@" + ann + "` is how she is mentioned", "and the tests", "mentioned", "directly",
	})
	equal(t, "thread", f.tasks()[0].Thread, f.tasks()[2].Thread)
	equal(t, "nobody spoke to us", len(f.Calls("chat.postEphemeral")), 0)

	equal(t, "the eyes", f.Reactions("D0ANN", f.tasks()[3].ID[:10]+"."+f.tasks()[3].ID[10:16]), []string{"eyes"})
}

func TestStop(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"stop", at + "Cancel!"} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			f := newFrontDoor(t, Config{Approvers: []string{carol}}, rights.Policy{})
			root := f.say(ann, general, "", at+"one")
			running, _ := f.begin()
			f.say(ann, general, root, at+"[model=opus] two")
			f.say(bob, general, root, at+"[model=haiku] three")
			waiting, bobs := f.tasks()[1], f.tasks()[0]

			f.say("U0DAVE", general, root, text)
			f.lastWord("U0DAVE", 1, policy.NotYours)
			said := f.say(ann, general, root, text)
			f.lastWord(ann, 1, intake.Stopping)
			equal(t, "running", f.state(running.ID).Cancel, "@u0ann")
			equal(t, "waiting", f.state(waiting.ID).Ending.Kind, tasks.Cancelled)
			equal(t, "another's", f.state(bobs.ID).Cancel, "")

			// A redelivered old stop does not stop newer requests.
			f.say(ann, general, root, at+"[model=sonnet] four")
			if err := f.Redeliver(t.Context(), said, slackfake.MessageEvent); err != nil {
				t.Error(err)
			}
			equal(t, "later", f.state(f.tasks()[0].ID).Cancel, "")

			f.say(carol, general, root, text)
			f.lastWord(carol, 1, intake.Stopping)
			equal(t, "everybody's", []string{f.state(bobs.ID).Cancel, f.state(f.tasks()[0].ID).Cancel},
				[]string{"@u0carol", "@u0carol"})
			equal(t, "tasks", len(f.prompts()), 4)
		})
	}
}

// Controls work in threads. Elsewhere they are not understood, and nothing is started.
func TestControlsOutsideThreads(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	f.say(ann, general, "", at+"stop")
	f.lastWord(ann, 1, inThread)
	f.say(ann, general, "", at+"help")
	equal(t, "help", strings.Contains(f.word(general, ann, 2), "[repo=owner/name"), true)
	root := f.say(bob, general, "", "among us")
	f.say(bob, general, root, "stop")
	f.say(bob, general, root, at+"status")
	f.lastWord(bob, 1, intake.NothingRuns)
	equal(t, "tasks", f.prompts(), []string(nil))

	f.say(ann, general, root, at+"stop the press")
	equal(t, "not exactly", f.prompts(), []string{"stop the press"})
}

func TestStatusInThread(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	root := f.say(ann, general, "", at+"one")
	f.say(bob, general, root, "status")
	f.lastWord(bob, 1, "“One” is waiting: no worker is alive.")
	if _, err := f.store.Workers.Beat(t.Context(),
		store.Worker{ID: "w", Health: json.RawMessage(`{"ok":true}`)}); err != nil {
		t.Fatal(err)
	}
	f.say(bob, general, root, "status")
	f.lastWord(bob, 2, "“One” is waiting: no worker is free yet.")
	_, claim := f.begin()
	f.say(ann, general, root, at+"[model=opus] two")
	f.say(bob, general, root, "status")
	said := f.word(general, bob, 3)
	if first, second, _ := strings.Cut(said, "\n"); !strings.HasPrefix(first, "“One” has been running for ") ||
		second != "“Two” is waiting: an earlier task of this thread is running." {
		t.Errorf("status %q", said)
	}
	question, err := json.Marshal(tasks.Question{Key: "q", Text: "Which?"})
	if err == nil {
		_, err = claim.Ask(t.Context(), "q", question)
	}
	if err != nil {
		t.Fatal(err)
	}
	f.say(bob, general, root, "status")
	equal(t, "asking", strings.HasPrefix(f.word(general, bob, 4), "“One” is waiting for your answer.\n"), true)
	f.say(ann, general, root, "stop")
	f.word(general, ann, 1)
	f.finish(claim, answered("yes"))
	f.say(bob, general, root, "status")
	f.lastWord(bob, 5, "“Two”: 🛑 Stopped by u0ann")
}

// A retry repeats the thread's latest request with the ones that its run had absorbed, once, however often the event
// arrives.
func TestRetryInThread(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	root := f.say(ann, general, "", at+"one")
	task, claim := f.begin()
	f.say(ann, general, root, "two")
	other, ok, err := claim.Take(t.Context(), false, json.RawMessage(`{}`))
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	f.say(ann, general, root, "retry")
	f.lastWord(ann, 1, intake.StillRunning)
	if err := claim.EndWith(t.Context(), json.RawMessage(`{"kind":"failed"}`),
		store.Covered{IDs: []string{other.ID}, Ending: json.RawMessage(`{"kind":"failed"}`)}); err != nil {
		t.Fatal(err)
	}
	if err := claim.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.say(bob, general, root, "retry")
	f.lastWord(bob, 1, policy.NotYours)
	f.say(ann, general, root, "retry")
	const unposted = "The answer to this and later messages is still being posted. Retry it after that, or ask again."
	f.lastWord(ann, 2, unposted)
	post, _, err := f.store.Outbox.Take(t.Context(), task.ID)
	if err == nil {
		err = f.store.Outbox.MarkPosted(t.Context(), post)
	}
	if err != nil {
		t.Fatal(err)
	}
	said := f.say(ann, general, root, "Retry.")
	f.lastWord(ann, 3, intake.Retrying)
	equal(t, "state", f.state(task.ID).State, "waiting")

	rec, err := f.store.Get(t.Context(), task.ID)
	if err != nil {
		t.Fatal(err)
	}
	claim, err = f.store.Claim(t.Context(), task.ID, rec.Delivery, "worker")
	if err != nil {
		t.Fatal(err)
	}
	f.finish(claim, answered("yes"))
	if err := f.Redeliver(t.Context(), said, slackfake.MessageEvent); err != nil {
		t.Error(err)
	}
	equal(t, "state", f.state(task.ID).State, "ended")
}

// A person whose message was absorbed by another person's run cannot stop that run.
func TestStopOfAnothersRun(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	root := f.say(ann, general, "", at+"one")
	task, claim := f.begin()
	reply := f.say(bob, general, root, "two")
	other := f.tasks()[0]
	shown := f.open(f.source, other)
	if _, ok, err := claim.Take(t.Context(), false, json.RawMessage(`{}`)); err != nil || !ok {
		t.Fatal(ok, err)
	}
	if err := f.React(t.Context(), bob, general, reply, "x"); err != nil {
		t.Error(err)
	}
	f.lastWord(bob, 1, policy.NotYours)
	f.press(bob, f.posted(shown.task)[0].TS, render.ActionStop)
	f.lastWord(bob, 2, policy.NotYours)
	equal(t, "not stopped", f.state(task.ID).Cancel+f.state(other.ID).Cancel, "")
	if err := f.React(t.Context(), ann, general, root, "x"); err != nil {
		t.Error(err)
	}
	equal(t, "stopped", f.state(task.ID).Cancel, "@u0ann")
}

// A control that mentions errand arrives as two events in any order. It is executed once, and its result is posted
// once.
func TestControlWithMention(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{"retry": intake.Retrying, "stop": intake.Stopping} {
		for _, kinds := range [][]string{{messageEvent, appMention}, {appMention, messageEvent}} {
			t.Run(word+" by "+kinds[0], func(t *testing.T) {
				t.Parallel()
				f := newFrontDoor(t, Config{}, rights.Policy{})
				root := f.say(ann, general, "", at+"one")
				if word == "retry" {
					_, claim := f.begin()
					f.finish(claim, answered("1"))
				}
				ts := f.seed(slackfake.Message{Text: at + word, ThreadTS: root})
				for _, kind := range kinds {
					f.send(map[string]any{
						"type": kind, "user": ann, "channel": general, "channel_type": "channel", "ts": ts,
						"thread_ts": root, "text": at + word,
					}, 200)
				}
				f.lastWord(ann, 1, want)
			})
		}
	}
}

// A redelivered old stop does not stop what has been retried since.
func TestOldStopAfterRetry(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	root := f.say(ann, general, "", at+"one")
	said := f.say(ann, general, root, "stop")
	f.word(general, ann, 1)
	id := f.one().ID
	if _, err := f.desk.Retry(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if err := f.Redeliver(t.Context(), said, slackfake.MessageEvent); err != nil {
		t.Error(err)
	}
	f.send(map[string]any{
		"type": reactionAdded, "user": ann, "reaction": stopSign, "item_user": ann, "event_ts": said,
		"item": map[string]any{"type": "message", "channel": general, "ts": root},
	}, 200)
	equal(t, "tried again", f.state(id).State, "waiting")
	if err := f.React(t.Context(), ann, general, root, stopSign); err != nil {
		t.Error(err)
	}
	equal(t, "a new one", f.state(id).State, "ended")
}

// ❌ on a request or on its status stops it, for people who may do so; all other reactions are ignored.
func TestStopSign(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{Approvers: []string{carol}}, rights.Policy{})
	react := func(user, ts, name string) {
		t.Helper()
		if err := f.React(t.Context(), user, general, ts, name); err != nil {
			t.Error(err)
		}
	}
	ts := f.say(ann, general, "", at+"one")
	first, claim := f.begin()
	f.open(f.source, first)
	status := f.posted(first)[0].TS
	loose := f.say(ann, general, "", "nothing")
	react(ann, loose, "x")
	react(ann, ts, "tada")
	react(bob, ts, "x")
	f.lastWord(bob, 1, policy.NotYours)
	equal(t, "not stopped", f.state(first.ID).Cancel, "")
	react(carol, status, "x")
	f.lastWord(carol, 1, intake.Stopping)
	equal(t, "stopped", f.state(first.ID).Cancel, "@u0carol")
	equal(t, "the word's place", f.Ephemeral(general, carol)[0].ThreadTS, ts)
	f.finish(claim, answered("yes"))
	react(ann, ts, "x")
	react(ann, status, "x")

	ts = f.say(ann, general, "", at+"two")
	react(ann, ts, "x")
	f.lastWord(ann, 1, intake.Stopping)
	equal(t, "withdrawn", f.state(f.tasks()[0].ID).Ending.Kind, tasks.Cancelled)
	equal(t, "reactions", slices.Contains(f.Reactions(general, ts), "x"), true)
	if said := f.log.String(); said != "" {
		t.Errorf("log: %s", said)
	}
}
