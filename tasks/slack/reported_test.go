package slack

import (
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/rights"
)

// What broke other bots, by their public reports.

// Slack sends message_changed also when it changes something about a message itself: a link unfurls, a reply comes, the
// language is detected. Such an event may lack the message before, and a message that was edited long ago keeps saying
// so. It is no edit (CopilotKit#6717, NousResearch/hermes-agent#89908).
func TestChangeWithoutTheMessageBefore(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	root := f.say(ann, general, "", at+"count")
	task, claim := f.begin()
	about := root
	again := func(text, edited, happened string) {
		t.Helper()
		f.send(map[string]any{
			"type": "message", "subtype": changed, "channel": general, "channel_type": "channel", "ts": happened,
			"message": map[string]any{
				"type": "message", "user": ann, "text": text, "ts": about, "reply_count": 1,
				"edited": map[string]any{"user": ann, "ts": edited},
			},
		}, 200)
	}
	again(at+"count", root[:10]+".000000", "1999999999.000100")
	equal(t, "while it runs", len(f.tasks()), 1)
	again(at+"count all", "1999999999.000000", "1999999999.000200")
	equal(t, "an edit", len(f.tasks()), 2)
	if _, err := f.desk.Cancel(t.Context(), f.tasks()[0].ID, "test"); err != nil {
		t.Fatal(err)
	}
	f.finish(claim, answered("3"))
	again(at+"count", root[:10]+".000000", "2000000000.000100")
	again(at+"count", "2000000000.000000", "2000000000.000200")
	equal(t, "after its end", len(f.tasks()), 2)
	equal(t, "still the first", f.state(task.ID).Ending.Kind, tasks.Answered)
	about = f.seed(slackfake.Message{Text: at + "status"}) // a command has no task, and is not obeyed again
	again(at+"count", "2000000001.000000", "2000000001.000200")
	equal(t, "of no task", len(f.tasks()), 2)
}

// Nor does an edit in a direct message ask again what was answered (openclaw#28834).
func TestEditOfAnAnsweredDirectMessage(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	ts := f.say(ann, "D0ANN", "", "count")
	_, claim := f.begin()
	f.finish(claim, answered("3"))
	if err := f.Edit(t.Context(), "D0ANN", ts, "count!"); err != nil {
		t.Fatal(err)
	}
	equal(t, "tasks", f.prompts(), []string{"count"})
}

// A reply that is also sent to the channel asks like any other (openshift/cluster-support-bot#14).
func TestBroadcastReply(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{appMention, messageEvent} {
		f := newFrontDoor(t, Config{}, rights.Policy{})
		root := f.seed(slackfake.Message{Text: "It is slow."})
		ts := f.seed(slackfake.Message{Text: at + "why?", ThreadTS: root})
		f.send(map[string]any{
			"type": kind, "subtype": "thread_broadcast", "channel": general, "channel_type": "channel", "user": ann,
			"text": at + "why?", "ts": ts, "thread_ts": root, "root": map[string]any{"ts": root, "text": "It is slow."},
		}, 200)
		equal(t, kind, f.one().Thread, "slack/"+team+"/"+general+"/"+root)
	}
}

// A message with nothing but a file asks, too (novuhq/novu#10961, pocketpaw#2125).
func TestOnlyAFile(t *testing.T) {
	t.Parallel()
	for channel, text := range map[string]string{"D0ANN": "", general: at} {
		f := newFrontDoor(t, Config{}, rights.Policy{})
		_, err := f.Post(t.Context(), slackfake.Message{
			Channel: channel, User: ann, Text: text, Files: []slackfake.File{{Name: "trace.txt", Data: []byte("boom")}},
		})
		if err != nil {
			t.Fatal(err)
		}
		prompt, _ := f.brief(f.one())
		if !strings.Contains(prompt, "trace.txt") {
			t.Errorf("%s: the agent gets %q", channel, prompt)
		}
	}
}
