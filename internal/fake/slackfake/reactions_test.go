package slackfake_test

import (
	"testing"

	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/slack-go/slack"
)

func TestReactions(t *testing.T) {
	t.Parallel()
	s, c := start(t, slackfake.Config{})
	ts := seed(t, s, slackfake.Message{Text: "please"})
	item := slack.NewRefToMessage(channel, ts)
	for _, name := range []string{"eyes", "+1::skin-tone-3"} {
		if err := c.AddReactionContext(t.Context(), name, item); err != nil {
			t.Fatalf("add %s: %v", name, err)
		}
	}
	want(t, "again", c.AddReactionContext(t.Context(), "eyes", item), "already_reacted")
	equal(t, "two", s.Reactions(channel, ts), []string{"eyes", "+1::skin-tone-3"})

	if err := c.RemoveReactionContext(t.Context(), "eyes", item); err != nil {
		t.Fatal(err)
	}
	want(t, "remove again", c.RemoveReactionContext(t.Context(), "eyes", item), "no_reaction")
	equal(t, "one", s.Reactions(channel, ts), []string{"+1::skin-tone-3"})

	want(t, "colons", c.AddReactionContext(t.Context(), ":eyes:", item), "invalid_name")
	want(t, "no message", c.AddReactionContext(t.Context(), "eyes",
		slack.NewRefToMessage(channel, "1600000000.000001")), "message_not_found")
	want(t, "no item", c.AddReactionContext(t.Context(), "eyes", slack.ItemRef{}), "no_item_specified")
	equal(t, "of no message", s.Reactions(channel, "1600000000.000001"), []string(nil))
}
