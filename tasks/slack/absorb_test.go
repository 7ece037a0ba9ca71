package slack

import (
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/slackfake"
	"github.com/errand-fleet/errand/tasks"
)

// A final message says which tasks it is for, is found again by that, and lets nobody look at us any more.
func TestFinalMessageCoversWhatWasAbsorbed(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{})
	first := w.task("")
	root := mustOrigin(t, first).TS
	second := w.task(root)
	e := answered("both")
	e.Covers = []string{second.ID, "1700000000000777-slack-c0general"} // a message that was deleted
	for _, task := range []tasks.Task{first, second} {
		w.source.react(t.Context(), mustOrigin(t, task), eyes)
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

// Who has to wait behind something else is told, once and alone; whose words the live run takes up is not.
func TestWaitingIsTold(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, tasks.Policy{})
	root := f.mention("one")
	say := func(text string) {
		t.Helper()
		ts, err := f.Mention(t.Context(), slackfake.Message{Channel: general, User: ann, Text: text, ThreadTS: root})
		if err != nil {
			t.Fatal(err)
		}
		f.until("the eyes", func() bool { return len(f.Reactions(general, ts)) == 1 })
		if err := f.Redeliver(t.Context(), ts, slackfake.AppMention); err != nil {
			t.Fatal(err)
		}
	}
	told := func() (texts []string) {
		for _, m := range f.Ephemeral(general, ann) {
			texts = append(texts, m.Text)
		}
		return texts
	}
	say("two")
	say("[repo=acme/web] three")
	f.until("a note", func() bool { return len(told()) == 1 })
	say("four")
	f.until("a note", func() bool { return len(told()) == 2 })
	equal(t, "notes", told(), []string{
		"There are 2 requests before this one in this thread that it cannot be added to. I take them in turn.",
		"There are 3 requests before this one in this thread that it cannot be added to. I take them in turn.",
	})
	equal(t, "said in public", len(f.Calls("chat.postMessage")), 0)
}
