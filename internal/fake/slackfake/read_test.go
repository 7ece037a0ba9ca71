package slackfake_test

import (
	"net/url"
	"testing"
	"time"

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

func TestRepliesOfWhatHasNone(t *testing.T) {
	t.Parallel()
	s, c := start(t, slackfake.Config{})
	alone := seed(t, s, slackfake.Message{Text: "alone"})
	root := seed(t, s, slackfake.Message{Text: "root"})
	reply := seed(t, s, slackfake.Message{Text: "reply", ThreadTS: root})
	for ts, texts := range map[string][]string{alone: {"alone"}, reply: {"reply"}, root: {"root", "reply"}} {
		got, _, _, err := c.GetConversationRepliesContext(t.Context(),
			&slack.GetConversationRepliesParameters{ChannelID: channel, Timestamp: ts})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "replies", slackTexts(got), texts)
		if ts == alone {
			equal(t, "thread_ts of what has no thread", got[0].ThreadTimestamp, "")
		}
	}
	_, _, _, err := c.GetConversationRepliesContext(t.Context(),
		&slack.GetConversationRepliesParameters{ChannelID: channel, Timestamp: "1600000000.000001"})
	want(t, "no such thread", err, "thread_not_found")
}

func TestRepliesTellOfThreadReactionsAndEdits(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_700_000_000, 0)
	s, c := start(t, slackfake.Config{Now: func() time.Time { return at }})
	root := seed(t, s, slackfake.Message{Text: "root"})
	reply := post(t, c, slack.MsgOptionText("one", false), slack.MsgOptionTS(root))
	if err := c.AddReactionContext(t.Context(), "eyes", slack.NewRefToMessage(channel, root)); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := c.UpdateMessageContext(t.Context(), channel, reply,
		slack.MsgOptionText("two", false)); err != nil {
		t.Fatal(err)
	}
	got, _, _, err := c.GetConversationRepliesContext(t.Context(),
		&slack.GetConversationRepliesParameters{ChannelID: channel, Timestamp: root})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "root", []any{
		got[0].ThreadTimestamp, got[0].ReplyCount, got[0].ReplyUsers, got[0].LatestReply, got[0].User,
	},
		[]any{root, 1, []string{bot}, reply, alice})
	equal(t, "reactions", got[0].Reactions, []slack.ItemReaction{{Name: "eyes", Count: 1, Users: []string{bot}}})
	equal(t, "reply", []any{got[1].ThreadTimestamp, got[1].ParentUserId, got[1].BotID, got[1].Text},
		[]any{root, alice, "B0ERRAND", "two"})
	equal(t, "edited", got[1].Edited, &slack.Edited{User: bot, Timestamp: "1700000000.000000"})
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

func TestHistoryIsTheTopLevelNewestFirst(t *testing.T) {
	t.Parallel()
	s, c := start(t, slackfake.Config{})
	root := seed(t, s, slackfake.Message{Text: "1"})
	seed(t, s, slackfake.Message{Text: "reply", ThreadTS: root})
	seed(t, s, slackfake.Message{Text: "2"})
	seed(t, s, slackfake.Message{Text: "3"})
	page, err := c.GetConversationHistoryContext(t.Context(),
		&slack.GetConversationHistoryParameters{ChannelID: channel, Limit: 2})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "first page", slackTexts(page.Messages), []string{"3", "2"})
	equal(t, "has_more", page.HasMore, true)
	seed(t, s, slackfake.Message{Text: "4"}) // what comes in between must not shift the next page
	page, err = c.GetConversationHistoryContext(t.Context(), &slack.GetConversationHistoryParameters{
		ChannelID: channel, Limit: 2, Cursor: page.ResponseMetaData.NextCursor,
	})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "second page", slackTexts(page.Messages), []string{"1"})
	equal(t, "has_more", page.HasMore, false)
	_, err = c.GetConversationHistoryContext(t.Context(), &slack.GetConversationHistoryParameters{ChannelID: "general"})
	want(t, "no such channel", err, "channel_not_found")
}

func TestWhoIsWho(t *testing.T) {
	t.Parallel()
	s, c := start(t, slackfake.Config{
		Channels: []slackfake.Channel{
			{ID: channel, Name: "general", External: true}, {ID: "C0SECRET", Private: true, Outside: true},
		},
		Users: []slackfake.User{{ID: "U0GUEST", RealName: "Gus", Guest: true, TeamID: "T0OTHER"}},
	})
	ctx := t.Context()
	me, err := c.AuthTestContext(ctx)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "auth.test", []string{me.UserID, me.BotID, me.TeamID}, []string{bot, "B0ERRAND", "T0ERRAND"})

	guest, err := c.GetUserInfoContext(ctx, "U0GUEST")
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := s.Seed(slackfake.Message{Channel: channel, User: "U0GUEST", Text: "x"})
	if err != nil {
		t.Fatal(err)
	}
	said, _, _, err := c.GetConversationRepliesContext(ctx, &slack.GetConversationRepliesParameters{
		ChannelID: channel, Timestamp: stranger,
	})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "team of the guest's message", said[0].Team, "T0OTHER")
	equal(t, "guest", []any{guest.RealName, guest.IsRestricted, guest.IsStranger, guest.TeamID},
		[]any{"Gus", true, true, "T0OTHER"})
	plain, err := c.GetUserInfoContext(ctx, alice)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "unlisted user", []any{
		plain.Name, plain.RealName, plain.TZ, plain.IsRestricted, plain.IsStranger, plain.IsBot,
	},
		[]any{"u0alice", "u0alice", "Etc/UTC", false, false, false})
	itself, err := c.GetUserInfoContext(ctx, bot)
	if err != nil || !itself.IsBot {
		t.Errorf("the bot is %+v, %v", itself, err)
	}
	_, err = c.GetUserInfoContext(ctx, "alice")
	want(t, "no such user", err, "user_not_found")

	for id, wanted := range map[string][]any{ // name, channel, group, im, private, shared, member
		channel:    {"general", true, false, false, false, true, true},
		"D0DIRECT": {"d0direct", false, false, true, true, false, true},
		"G0GROUP":  {"g0group", false, true, false, true, false, true},
	} {
		ch, err := c.GetConversationInfoContext(ctx, &slack.GetConversationInfoInput{ChannelID: id})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, id, []any{
			ch.Name, ch.IsChannel, ch.IsGroup, ch.IsIM, ch.IsPrivate, ch.IsExtShared, ch.IsMember,
		}, wanted)
	}
	_, err = c.GetConversationInfoContext(ctx, &slack.GetConversationInfoInput{ChannelID: "C0SECRET"})
	want(t, "private channel without the bot", err, "channel_not_found")

	b, err := c.GetBotInfoContext(ctx, slack.GetBotInfoParameters{Bot: "B0ERRAND"})
	if err != nil || b.UserID != bot || b.AppID != "A0ERRAND" {
		t.Errorf("bots.info = %+v, %v", b, err)
	}
	_, err = c.GetBotInfoContext(ctx, slack.GetBotInfoParameters{Bot: "B0OTHER"})
	want(t, "no such bot", err, "bot_not_found")
}
