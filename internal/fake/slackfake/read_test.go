package slackfake_test

import (
	"net/url"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/slack-go/slack"
)

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
