package slack

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/errand-fleet/errand/tasks/rights"
)

// contains fails unless a text has all of these.
func contains(t *testing.T, what, text string, want ...string) {
	t.Helper()
	for _, one := range want {
		if !strings.Contains(text, one) {
			t.Errorf("%s lacks %q:\n%s", what, one, text)
		}
	}
}

// What a message brings along reaches the agent with its author and origin, marked as other people's words.
func TestForwardedMessages(t *testing.T) {
	t.Parallel()
	const share = `[{"is_share":true,"author_name":"ben","from_url":"https://x.slack.com/archives/C1/p1","text":"INCIDENT-4711",
		"files":[{"id":"F1","name":"trace.txt","mimetype":"text/plain","size":1,"url_private":"https://elsewhere.example/trace.txt"}]}]`
	for name, test := range map[string]struct {
		message slackfake.Message
		event   string
		begins  string
		has     []string
	}{
		"beside words": {
			slackfake.Message{Channel: general, Text: at + "deal with this", Attachments: json.RawMessage(share)},
			slackfake.AppMention, "deal with this\n\n" + broughtIntro,
			[]string{"Forwarded message by ben, https://x.slack.com/archives/C1/p1:\n```\nINCIDENT-4711\n[file: trace.txt]\n```", "trace.txt\" could not be downloaded"},
		},
		"without words": {
			slackfake.Message{Channel: "D0ANN", Attachments: json.RawMessage(share)},
			slackfake.MessageEvent, onlyBrought,
			[]string{"INCIDENT-4711"},
		},
		"a preview": {
			slackfake.Message{Channel: general, Text: at + "what is it?", Attachments: json.RawMessage(`[{
				"from_url":"https://ci.example/7","service_name":"CI","title":"Build 7","title_link":"https://ci.example/7","text":"<https://ci.example|red> &amp; late"}]`)},
			slackfake.AppMention, "what is it?",
			[]string{"Preview of a link by CI, https://ci.example/7:", "Build 7\nred (https://ci.example) & late"},
		},
		"an alert": {
			slackfake.Message{Channel: general, Text: at + "look", Attachments: json.RawMessage(`[{
				"pretext":"Firing","title":"DiskFull","fields":[{"title":"host","value":"db-1"}],"fallback":"not this"}, {"fallback":"only this"}]`)},
			slackfake.AppMention, "look",
			[]string{"Firing\nDiskFull\nhost: db-1", "only this"},
		},
		"blocks of a message in it": {
			slackfake.Message{Channel: general, Text: at + "look", Attachments: json.RawMessage(`[{"is_share":true,"author_id":"U0BOB",
				"message_blocks":[{"message":{"blocks":[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[
					{"type":"text","text":"deep "},{"type":"user","user_id":"U0ANN"},{"type":"link","url":"https://deep.example"}]}]}]}}]}]`)},
			slackfake.AppMention, "look",
			[]string{"by U0BOB", "deep", "@U0ANN", "https://deep.example"},
		},
		"of another form": {
			slackfake.Message{Channel: general, Text: at + "look", Attachments: json.RawMessage(`[7,{"title":["x"],"text":"still here"}]`)},
			slackfake.AppMention, "look",
			[]string{"still here"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFrontDoor(t, Config{}, rights.Policy{})
			test.message.User = ann
			f.sendRaw(test.message, test.event)
			task := f.one()
			prompt, _ := f.brief(task)
			if !strings.HasPrefix(prompt, test.begins) {
				t.Errorf("the prompt does not begin with %q", test.begins)
			}
			contains(t, "prompt", prompt, append(test.has, broughtIntro)...)
			if strings.Contains(prompt, "not this") {
				t.Errorf("a fallback beside other words: %s", prompt)
			}
		})
	}
}

// sendRaw sends the event of a message with attachments.
func (f *frontDoor) sendRaw(m slackfake.Message, kind string) {
	f.Helper()
	event := map[string]any{
		"type": kind, "user": m.User, "channel": m.Channel, "ts": f.recently(), "text": m.Text,
		"attachments": m.Attachments, "event_ts": "1700000000.000100",
	}
	if kind == slackfake.MessageEvent {
		event["channel_type"] = "im"
	}
	f.send(event, 200)
}

// What a long forward brings is bounded, and no fence stays open.
func TestBroughtIsBounded(t *testing.T) {
	t.Parallel()
	var c content
	for range 20 {
		c.Attachments = append(c.Attachments, secondary{Text: strings.Repeat("long ", 2000)})
	}
	text := c.brought()
	if len(text) > 2*maxMessage+200 || strings.Count(text, "```")%2 != 0 || !strings.HasSuffix(text, "more.") {
		t.Errorf("%d bytes, ends with %q", len(text), text[len(text)-50:])
	}
}

// The messages of a thread have all of their words, too.
func TestThreadHasAllWords(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, Config{})
	root := w.seed(slackfake.Message{
		User: bob, Text: "fyi", Attachments: json.RawMessage(`[{"is_share":true,"author_name":"ben","text":"INCIDENT-4713"}]`),
	})
	w.seed(slackfake.Message{
		User: "U0CI", BotID: "B0CI", Text: "New alert", ThreadTS: root,
		Attachments: json.RawMessage(`[{"title":"DiskFull","text":"host x","fields":[{"title":"zone","value":"eu"}]}]`),
	})
	w.seed(slackfake.Message{
		User: "U0CI", BotID: "B0CI", Text: "Deploy", ThreadTS: root,
		Blocks: json.RawMessage(`[{"type":"section","text":{"type":"mrkdwn","text":"*Deploy* of version 7"}},{"type":"actions","elements":[{"type":"button","text":{"type":"plain_text","text":"Roll back"}}]}]`),
	})
	w.seed(slackfake.Message{
		User: ann, Text: "see *this*", ThreadTS: root,
		Blocks: json.RawMessage(`[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"text","text":"see "},{"type":"text","text":"this","style":{"bold":true}}]}]}]`),
	})
	w.seed(slackfake.Message{User: bob, ThreadTS: root, Files: []slackfake.File{{Name: "trace.txt", Data: []byte("x")}}})
	b, err := w.source.Brief(t.Context(), w.task(root), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	contains(t, "thread", b.System, "```\nfyi\n[Forwarded message by ben]\nINCIDENT-4713\n```",
		"```\nNew alert\n[Attachment]\nDiskFull\nhost x\nzone: eu\n```",
		"```\nDeploy\n*Deploy* of version 7\n```", "```\nsee *this*\n```", "```\n[file: trace.txt]\n```")
}

// A mention without words is a request in a thread, and a question for help elsewhere.
func TestBareMention(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	f.mention(at)
	f.until("help", func() bool { return len(f.Ephemeral(general, ann)) == 1 })
	contains(t, "help", f.Ephemeral(general, ann)[0].Text, "Mention me and say what you want done.")
	equal(t, "tasks", len(f.tasks()), 0)

	root := f.seed(slackfake.Message{User: bob, Text: "why is the build red?"})
	if _, err := f.Mention(t.Context(), slackfake.Message{
		Channel: general, User: ann, Text: strings.TrimSpace(at), ThreadTS: root,
	}); err != nil {
		t.Fatal(err)
	}
	equal(t, "prompt", f.one().Prompt, onlyThread)
	contains(t, "thread", f.briefed(f.one()).System, "why is the build red?")
}
