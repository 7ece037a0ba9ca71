package slackfake_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/slack-go/slack"
)

func divider() slack.Block { return slack.NewDividerBlock() }

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
