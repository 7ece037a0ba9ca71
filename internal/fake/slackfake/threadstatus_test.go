package slackfake_test

import (
	"testing"

	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/slack-go/slack"
)

func TestThreadStatus(t *testing.T) {
	t.Parallel()
	s, c := start(t, slackfake.Config{Channels: []slackfake.Channel{{ID: "C0OLD", Archived: true}}})
	ts := seed(t, s, slackfake.Message{Text: "please"})
	set := func(channel, ts, status string) error {
		return c.SetAssistantThreadsStatusContext(t.Context(),
			slack.AssistantThreadsSetStatusParameters{ChannelID: channel, ThreadTS: ts, Status: status})
	}
	for _, status := range []string{"is working…", "", "is working…"} {
		if err := set(channel, ts, status); err != nil {
			t.Fatal(err)
		}
		equal(t, "status", s.ThreadStatus(channel, ts), status)
	}
	post(t, c, slack.MsgOptionText("elsewhere", false))
	equal(t, "after a post elsewhere", s.ThreadStatus(channel, ts), "is working…")
	post(t, c, slack.MsgOptionText("done", false), slack.MsgOptionTS(ts))
	equal(t, "after a post", s.ThreadStatus(channel, ts), "")

	want(t, "no thread", set(channel, "", "is working…"), "invalid_thread_ts")
	want(t, "an unknown thread", set(channel, "1600000000.000001", "is working…"), "invalid_thread_ts")
	want(t, "an unknown channel", set("nowhere", ts, "is working…"), "channel_not_found")
	want(t, "an archived channel", set("C0OLD", ts, "is working…"), "is_archived")
}
