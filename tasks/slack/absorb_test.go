package slack

import (
	"fmt"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/tasks/slack/render"
)

// A final message names the tasks that it answers, can be found by that, and removes errand's reactions from their
// messages.
func TestFinalMessageCoversWhatWasAbsorbed(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{})
	first := w.task("")
	root := mustOrigin(t, first).TS
	second := w.task(root)
	e := answered("both")
	e.Covers = []string{second.ID, "1700000000000777-slack-c0general"} // a message that was deleted
	for _, task := range []tasks.Task{first, second} {
		w.source.client.react(t.Context(), mustOrigin(t, task), eyes)
	}
	for range 2 {
		if err := w.open(w.process(Config{}), first).Close(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	posted := w.posted(first)
	equal(t, "parts", partsOf(posted), []string{"status", "final/1"})
	if want := `"covers":"` + strings.Join(e.Covers, " ") + `"`; !strings.Contains(string(posted[1].Metadata), want) {
		t.Errorf("metadata %s, want %s", posted[1].Metadata, want)
	}
	for _, task := range []tasks.Task{first, second} {
		equal(t, "eyes", w.Reactions(general, mustOrigin(t, task).TS), []string(nil))
	}
}

// If a run has absorbed more tasks than its message can name, the message is still posted, and only once.
func TestFinalMessageThatCoversVeryMany(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{})
	task := w.task("")
	e := answered("all")
	for i := range 600 {
		e.Covers = append(e.Covers, fmt.Sprintf("17000000%08d-slack-c0general", i))
	}
	r := w.open(w.source, task)
	w.Fail("chat.postMessage", slackfake.Failure{After: true})
	if err := r.Close(t.Context(), e); err == nil {
		t.Error("no error")
	}
	if err := w.open(w.source, task).Close(t.Context(), e); err != nil {
		t.Error(err)
	}
	equal(t, "parts", partsOf(w.posted(task)), []string{"status", "final/1"})
}

// A message that has to wait gets a status with a stop button, once; a message that the live run absorbs gets none. The
// status becomes that of the run, and ends with the run that absorbed it.
func TestWaitingIsShown(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	root := f.mention("one")
	say := func(text string) tasks.Task {
		t.Helper()
		ts, err := f.Mention(t.Context(), slackfake.Message{Channel: general, User: ann, Text: text, ThreadTS: root})
		if err != nil {
			t.Fatal(err)
		}
		f.until("the eyes", func() bool { return len(f.Reactions(general, ts)) == 1 })
		if err := f.Redeliver(t.Context(), ts, slackfake.AppMention); err != nil {
			t.Fatal(err)
		}
		return f.tasks()[0]
	}
	shown := func() (texts []string) {
		for _, m := range f.Messages(general, root) {
			if m.User == bot {
				texts = append(texts, m.Text)
			}
		}
		return texts
	}
	say("two")
	three := say("[repo=acme/web] three")
	f.until("a note", func() bool { return len(shown()) == 1 })
	four := say("four")
	f.until("a note", func() bool { return len(shown()) == 2 })
	equal(t, "notes", shown(), []string{
		"⏳ Waiting: 2 tasks of this thread come first",
		"⏳ Waiting: 3 tasks of this thread come first",
	})
	f.press(ann, f.posted(four)[0].TS, render.ActionStop)
	f.settle()
	equal(t, "stopped", f.state(four.ID).Ending.Kind, tasks.Cancelled)

	first := f.tasks()[3]
	e := answered("all")
	e.Covers = []string{three.ID}
	if err := f.open(f.source, first).Close(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	r := f.open(f.source, four)
	if err := r.Close(t.Context(), *f.state(four.ID).Ending); err != nil {
		t.Fatal(err)
	}
	equal(t, "at the end", shown(), []string{
		"✅ Done (2m5s)", "🛑 Stopped", "✅ Done (2m5s)", "<@U0ANN>\nall",
		"<@U0ANN> Stopped by u0ann. Ask again to continue.",
	})
}

// A request that waits shows its place in line as it changes, in one message, whichever worker knows of it. The run
// takes the message over.
func TestWaitingChanges(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{})
	task := w.task("")
	for _, place := range []string{"3rd", "2nd", "1st"} {
		why := place + " in line; 2 of 2 runs busy in acme/api"
		waits := tasks.Headline{Sign: "⏳", State: tasks.Waiting, Detail: why}
		worker := w.process(Config{})
		for range 2 {
			if err := worker.Waits(t.Context(), task, waits); err != nil {
				t.Fatal(err)
			}
			if posted := w.posted(task); len(posted) != 1 || posted[0].Text != "⏳ Waiting: "+why {
				t.Errorf("%s: %+v", why, posted)
			}
		}
	}
	if err := w.open(w.process(Config{}), task).Close(t.Context(), answered("all")); err != nil {
		t.Fatal(err)
	}
	equal(t, "parts", partsOf(w.posted(task)), []string{"status", "final/1"})
}
