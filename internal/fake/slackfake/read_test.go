package slackfake_test

import (
	"net/url"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/slack-go/slack"
)

func slackTexts(messages []slack.Message) []string {
	var out []string
	for _, m := range messages {
		out = append(out, m.Text)
	}
	return out
}

func TestRepliesInPages(t *testing.T) {
	t.Parallel()
	s, c := start(t, slackfake.Config{})
	root := seed(t, s, slackfake.Message{Text: "root"})
	for _, text := range []string{"1", "2", "3", "4"} {
		seed(t, s, slackfake.Message{Text: text, ThreadTS: root})
	}
	var pages [][]string
	for cursor := ""; ; {
		got, more, next, err := c.GetConversationRepliesContext(t.Context(),
			&slack.GetConversationRepliesParameters{ChannelID: channel, Timestamp: root, Limit: 2, Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		if more != (next != "") {
			t.Errorf("has_more is %v with next cursor %q", more, next)
		}
		pages = append(pages, slackTexts(got))
		if cursor = next; cursor == "" {
			break
		}
	}
	equal(t, "pages", pages, [][]string{{"root", "1"}, {"2", "3"}, {"4"}})
	_, _, _, err := c.GetConversationRepliesContext(t.Context(),
		&slack.GetConversationRepliesParameters{ChannelID: channel, Timestamp: root, Cursor: "bm9uc2Vuc2U="})
	want(t, "bad cursor", err, "invalid_cursor")
}

func TestRepliesInATimeRange(t *testing.T) {
	t.Parallel()
	s, c := start(t, slackfake.Config{})
	root := seed(t, s, slackfake.Message{Text: "root"})
	first := seed(t, s, slackfake.Message{Text: "1", ThreadTS: root})
	seed(t, s, slackfake.Message{Text: "2", ThreadTS: root})
	last := seed(t, s, slackfake.Message{Text: "3", ThreadTS: root})
	for _, tc := range []struct {
		name           string
		oldest, latest string
		inclusive      bool
		want           []string
	}{
		{"between", first, last, false, []string{"root", "2"}},
		{"with both ends", first, last, true, []string{"root", "1", "2", "3"}},
		{"since", first, "", false, []string{"root", "2", "3"}},
		{"until", "", first, true, []string{"root", "1"}},
	} {
		got, _, _, err := c.GetConversationRepliesContext(t.Context(), &slack.GetConversationRepliesParameters{
			ChannelID: channel, Timestamp: root, Oldest: tc.oldest, Latest: tc.latest, Inclusive: tc.inclusive,
		})
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		equal(t, tc.name, slackTexts(got), tc.want)
	}
	_, _, _, err := c.GetConversationRepliesContext(t.Context(),
		&slack.GetConversationRepliesParameters{ChannelID: channel, Timestamp: root, Oldest: "yesterday"})
	want(t, "oldest", err, "invalid_ts_oldest")
}

func TestMetadataOnlyWhenAskedFor(t *testing.T) {
	t.Parallel()
	s, c := start(t, slackfake.Config{})
	meta := slack.SlackMetadata{EventType: "errand_report", EventPayload: map[string]any{"task": "t1", "n": float64(2)}}
	root := seed(t, s, slackfake.Message{Text: "root"})
	post(t, c, slack.MsgOptionText("marked", false), slack.MsgOptionTS(root), slack.MsgOptionMetadata(meta))
	top := post(t, c, slack.MsgOptionText("marked too", false), slack.MsgOptionMetadata(meta))

	for asked, wanted := range map[bool]slack.SlackMetadata{true: meta, false: {}} {
		replies, _, _, err := c.GetConversationRepliesContext(t.Context(),
			&slack.GetConversationRepliesParameters{ChannelID: channel, Timestamp: root, IncludeAllMetadata: asked})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "replies", replies[1].Metadata, wanted)
		history, err := c.GetConversationHistoryContext(t.Context(),
			&slack.GetConversationHistoryParameters{ChannelID: channel, IncludeAllMetadata: asked})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "history", history.Messages[0].Metadata, wanted)
	}

	// An empty object removes it (chat.update's reference); slack-go cannot send one through MsgOptionMetadata.
	empty := slack.UnsafeMsgOptionEndpoint(s.APIURL()+"chat.update", func(v url.Values) { v.Set("metadata", "{}") })
	if _, _, _, err := c.UpdateMessageContext(t.Context(), channel, top,
		slack.MsgOptionText("bare", false), empty); err != nil {
		t.Fatal(err)
	}
	if got := s.Messages(channel, "")[1]; got.Metadata != nil {
		t.Errorf("metadata left: %s", got.Metadata)
	}
}
