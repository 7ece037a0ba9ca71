package slackfake_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/slack-go/slack"
)

func divider() slack.Block { return slack.NewDividerBlock() }

func TestPostIntoAThread(t *testing.T) {
	t.Parallel()
	s, c := start(t, slackfake.Config{})
	root := seed(t, s, slackfake.Message{Text: "please"})
	seed(t, s, slackfake.Message{Text: "something else"})
	reply := post(t, c, slack.MsgOptionText("working", false), slack.MsgOptionTS(root))
	seed(t, s, slackfake.Message{Text: "thanks", ThreadTS: root})

	equal(t, "thread", texts(s.Messages(channel, root)), []string{"please", "working", "thanks"})
	equal(t, "top level", texts(s.Messages(channel, "")), []string{"please", "something else"})
	equal(t, "other channel", texts(s.Messages("C0OTHER", root)), []string(nil))
	equal(t, "the bot's message", s.Messages(channel, root)[1], slackfake.Message{
		Channel: channel, TS: reply, ThreadTS: root, User: bot, BotID: "B0ERRAND", Text: "working",
	})
}

func TestPostAnswersWithTheMessage(t *testing.T) {
	t.Parallel()
	s, c := start(t, slackfake.Config{})
	root := seed(t, s, slackfake.Message{Text: "please"})
	_, _, m, err := c.PostMessageWithResponseContext(t.Context(), channel, slack.MsgOptionText("x", false),
		slack.MsgOptionTS(root))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "thread_ts", m.ThreadTimestamp, root)
	equal(t, "bot_id", m.BotID, "B0ERRAND")

	// slack-go#1571: a root that is gone un-threads the reply, and only the answer tells.
	_, ts, m, err := c.PostMessageWithResponseContext(t.Context(), channel,
		slack.MsgOptionText("x", false), slack.MsgOptionTS("1600000000.000001"))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "thread_ts without root", m.ThreadTimestamp, "")
	if top := s.Messages(channel, ""); top[len(top)-1].TS != ts {
		t.Errorf("the reply is not at the top level: %+v", top)
	}
}

func TestPostRefusals(t *testing.T) {
	t.Parallel()
	s, c := start(t, slackfake.Config{Channels: []slackfake.Channel{
		{ID: "C0OLD", Archived: true}, {ID: "C0FAR", Outside: true}, {ID: "C0SECRET", Outside: true, Private: true},
	}})
	root := seed(t, s, slackfake.Message{Text: "please"})
	reply := seed(t, s, slackfake.Message{Text: "more", ThreadTS: root})
	text := slack.MsgOptionText("x", false)
	for _, tc := range []struct {
		name, channel, code string
		opts                []slack.MsgOption
	}{
		{"no such channel", "general", "channel_not_found", []slack.MsgOption{text}},
		{"private channel without the bot", "C0SECRET", "channel_not_found", []slack.MsgOption{text}},
		{"public channel without the bot", "C0FAR", "not_in_channel", []slack.MsgOption{text}},
		{"archived", "C0OLD", "is_archived", []slack.MsgOption{text}},
		{"nothing said", channel, "no_text", nil},
		{"empty blocks", channel, "no_text", []slack.MsgOption{slack.MsgOptionBlocks()}},
		{"reply to a reply", channel, "cannot_reply_to_message", []slack.MsgOption{text, slack.MsgOptionTS(reply)}},
		{
			"attachments", channel, "invalid_attachments",
			[]slack.MsgOption{text, slack.MsgOptionAttachments(slack.Attachment{Text: "x"})},
		},
		{
			"metadata without type", channel, "invalid_metadata_format",
			[]slack.MsgOption{text, slack.MsgOptionMetadata(slack.SlackMetadata{})},
		},
		{
			"large metadata", channel, "metadata_too_large",
			[]slack.MsgOption{text, slack.MsgOptionMetadata(slack.SlackMetadata{
				EventType: "e", EventPayload: map[string]any{"k": strings.Repeat("v", 20_000)},
			})},
		},
	} {
		_, _, err := c.PostMessageContext(t.Context(), tc.channel, tc.opts...)
		want(t, tc.name, err, tc.code)
	}
	if n := len(s.Messages(channel, root)) + len(s.Messages(channel, "")); n != 3 {
		t.Errorf("a refused message was stored: %d messages", n)
	}
}

func TestLongTextIsCutWithAWarning(t *testing.T) {
	t.Parallel()
	s, _ := start(t, slackfake.Config{})
	// slack-go does not hand on the warnings of chat.postMessage.
	resp, err := http.PostForm(s.APIURL()+"chat.postMessage", url.Values{
		"token": {"xoxb-test"}, "channel": {channel}, "text": {strings.Repeat("ö", 40_001)},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var said slack.SlackResponse
	if err := json.NewDecoder(resp.Body).Decode(&said); err != nil {
		t.Fatal(err)
	}
	equal(t, "answer", []any{said.Ok, said.Warning, said.ResponseMetadata.Warnings},
		[]any{true, "message_truncated", []string{"message_truncated"}})
	equal(t, "kept", len([]rune(s.Messages(channel, "")[0].Text)), 40_000)
	equal(t, "lint", slackfake.Lint(nil, strings.Repeat("x", 40_001)),
		[]string{"message_truncated: text has 40001 characters, 40000 are kept"})
}

func TestInvalidBlocksComeWithTheirPlaces(t *testing.T) {
	t.Parallel()
	s, c := start(t, slackfake.Config{})
	long := slack.NewTextBlockObject(slack.MarkdownType, strings.Repeat("x", 3001), false, false)
	_, _, err := c.PostMessageContext(t.Context(), channel,
		slack.MsgOptionBlocks(divider(), slack.NewSectionBlock(long, nil, nil)))
	want(t, "long section", err, "invalid_blocks")
	refused, ok := errors.AsType[slack.SlackErrorResponse](err)
	if !ok {
		t.Fatalf("error is a %T", err)
	}
	detail := "must be less than 3001 characters [json-pointer:/blocks/1/text/text]"
	equal(t, "messages", refused.ResponseMetadata.Messages, []string{"[ERROR] " + detail})
	if len(refused.Errors) != 1 || *refused.Errors[0].Message != detail {
		t.Errorf("errors = %+v", refused.Errors)
	}
	if got := s.Messages(channel, ""); len(got) != 0 {
		t.Errorf("stored: %+v", got)
	}
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_700_000_000, 0)
	s, c := start(t, slackfake.Config{Now: func() time.Time { return at }})
	meta := slack.SlackMetadata{EventType: "errand", EventPayload: map[string]any{"k": "v"}}
	ts := post(t, c, slack.MsgOptionText("one", false), slack.MsgOptionBlocks(divider()), slack.MsgOptionMetadata(meta))
	update := func(opts ...slack.MsgOption) slackfake.Message {
		t.Helper()
		if _, _, _, err := c.UpdateMessageContext(t.Context(), channel, ts, opts...); err != nil {
			t.Fatalf("update: %v", err)
		}
		return s.Messages(channel, "")[0]
	}
	const kept = `{"event_type":"errand","event_payload":{"k":"v"}}`

	m := update(slack.MsgOptionText("two", false))
	equal(t, "text alone", []any{m.Text, string(m.Blocks), string(m.Metadata), m.Edits},
		[]any{"two", `[{"type":"divider"}]`, kept, 1})
	m = update(slack.MsgOptionBlocks(divider(), divider()))
	equal(t, "blocks alone", []any{m.Text, string(m.Blocks), string(m.Metadata)},
		[]any{"two", `[{"type":"divider"},{"type":"divider"}]`, kept})
	m = update(slack.MsgOptionText("three", false), slack.MsgOptionBlocks())
	equal(t, "empty blocks", []any{m.Text, m.Blocks}, []any{"three", json.RawMessage(nil)})
	equal(t, "edits", []any{m.Edits, m.EditedAt}, []any{3, []time.Time{at, at, at}})
	if m.TS != ts {
		t.Errorf("ts changed from %s to %s", ts, m.TS)
	}
}

func TestUpdateMayDropBlocks(t *testing.T) {
	t.Parallel()
	s, c := start(t, slackfake.Config{DropBlocks: true})
	ts := post(t, c, slack.MsgOptionText("one", false), slack.MsgOptionBlocks(divider()))
	for _, tc := range []struct {
		opt    slack.MsgOption
		blocks string
	}{
		{slack.MsgOptionBlocks(divider(), divider()), `[{"type":"divider"},{"type":"divider"}]`},
		{slack.MsgOptionText("two", false), ""},
	} {
		if _, _, _, err := c.UpdateMessageContext(t.Context(), channel, ts, tc.opt); err != nil {
			t.Fatal(err)
		}
		equal(t, "blocks", string(s.Messages(channel, "")[0].Blocks), tc.blocks)
	}
}

func TestUpdateRefusals(t *testing.T) {
	t.Parallel()
	s, c := start(t, slackfake.Config{})
	theirs := seed(t, s, slackfake.Message{Text: "mine"})
	otherBot, err := s.Seed(slackfake.Message{Channel: channel, User: "U0OTHERBOT", BotID: "B0OTHER", Text: "beep"})
	if err != nil {
		t.Fatal(err)
	}
	ours := post(t, c, slack.MsgOptionText("one", false))
	x := slack.MsgOptionText("x", false)
	for _, tc := range []struct {
		name, ts, code string
		opt            slack.MsgOption
	}{
		{"a person's", theirs, "cant_update_message", x},
		{"another bot's", otherBot, "cant_update_message", x},
		{"nobody's", "1600000000.000001", "message_not_found", x},
		{"nothing new", ours, "no_text", slack.MsgOptionCompose()},
		{"all emptied", ours, "no_text", slack.MsgOptionText("", false)},
		{"4,001 characters", ours, "msg_too_long", slack.MsgOptionText(strings.Repeat("x", 4_001), false)},
		{"bad block", ours, "invalid_blocks", slack.MsgOptionBlocks(slack.NewMarkdownBlock("", ""))},
	} {
		_, _, _, err := c.UpdateMessageContext(t.Context(), channel, tc.ts, tc.opt)
		want(t, tc.name, err, tc.code)
	}
	got := s.Messages(channel, "")
	equal(t, "texts", texts(got), []string{"mine", "beep", "one"})
	equal(t, "edits of ours", got[2].Edits, 0)
	if _, _, _, err := c.UpdateMessageContext(t.Context(), channel, ours,
		slack.MsgOptionText(strings.Repeat("x", 4_000), false)); err != nil {
		t.Errorf("4,000 characters: %v", err)
	}
}

func TestDelete(t *testing.T) {
	t.Parallel()
	s, c := start(t, slackfake.Config{})
	theirs := seed(t, s, slackfake.Message{Text: "mine"})
	ours := post(t, c, slack.MsgOptionText("one", false))
	_, _, err := c.DeleteMessageContext(t.Context(), channel, theirs)
	want(t, "a person's", err, "cant_delete_message")
	if _, _, err := c.DeleteMessageContext(t.Context(), channel, ours); err != nil {
		t.Fatal(err)
	}
	_, _, err = c.DeleteMessageContext(t.Context(), channel, ours)
	want(t, "again", err, "message_not_found")
	equal(t, "left", texts(s.Messages(channel, "")), []string{"mine"})
}

func TestEphemeralIsSeenByOneAndNeverFoundAgain(t *testing.T) {
	t.Parallel()
	s, c := start(t, slackfake.Config{})
	ts, err := c.PostEphemeralContext(t.Context(), channel, alice, slack.MsgOptionText("psst", false))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "Alice sees", texts(s.Ephemeral(channel, alice)), []string{"psst"})
	equal(t, "Bob sees", texts(s.Ephemeral(channel, "U0BOB")), []string(nil))
	equal(t, "the channel sees", texts(s.Messages(channel, "")), []string(nil))
	_, _, _, err = c.UpdateMessageContext(t.Context(), channel, ts, slack.MsgOptionText("x", false))
	want(t, "update", err, "message_not_found")
	_, err = c.PostEphemeralContext(t.Context(), channel, "alice", slack.MsgOptionText("psst", false))
	want(t, "no such user", err, "user_not_in_channel")
}

func TestPermalink(t *testing.T) {
	t.Parallel()
	s, c := start(t, slackfake.Config{Now: func() time.Time { return time.Unix(1_700_000_000, 0) }})
	root := seed(t, s, slackfake.Message{Text: "please"})
	reply := post(t, c, slack.MsgOptionText("working", false), slack.MsgOptionTS(root))
	for ts, path := range map[string]string{
		root:  "/archives/C0GENERAL/p1700000000000000",
		reply: "/archives/C0GENERAL/p1700000000000001?thread_ts=1700000000.000000&cid=C0GENERAL",
	} {
		link, err := c.GetPermalinkContext(t.Context(), &slack.PermalinkParameters{Channel: channel, Ts: ts})
		if err != nil || link != s.URL()+path {
			t.Errorf("permalink of %s = %q, %v; want %s", ts, link, err, path)
		}
	}
	_, err := c.GetPermalinkContext(t.Context(), &slack.PermalinkParameters{Channel: channel, Ts: "1600000000.000001"})
	want(t, "nobody's", err, "message_not_found")
}
