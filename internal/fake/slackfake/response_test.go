package slackfake_test

import (
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/slack-go/slack"
)

// menu is one with two options.
func menu() slack.Block {
	return slack.NewActionBlock("b", slack.NewOptionsSelectBlockElement(slack.OptTypeStatic,
		plainText("Which?"), "pick",
		slack.NewOptionBlockObject("1", plainText("one"), nil), slack.NewOptionBlockObject("2", plainText("two"), nil)))
}

// The response URL of an ephemeral message should work five times.
func TestResponseURL(t *testing.T) {
	t.Parallel()
	s, c := start(t, slackfake.Config{})
	if _, err := c.PostEphemeralContext(t.Context(), channel, alice, slack.MsgOptionText("?", false),
		slack.MsgOptionBlocks(menu())); err != nil {
		t.Fatal(err)
	}
	ts := s.Ephemeral(channel, alice)[0].TS
	a := dial(t, s, always)
	if err := s.Choose(t.Context(), alice, channel, ts, "pick", "2"); err != nil {
		t.Fatal(err)
	}
	got, _ := (<-a.events).Data.(slack.InteractionCallback)
	action := got.ActionCallback.BlockActions[0]
	equal(t, "choice", []string{
		action.ActionID, action.BlockID, action.SelectedOption.Value,
		got.BlockActionState.Values["b"]["pick"].SelectedOption.Value,
	},
		[]string{"pick", "b", "2", "2"})
	for name, err := range map[string]error{
		"no option": s.Choose(t.Context(), alice, channel, ts, "pick", "3"),
		"no menu":   s.Choose(t.Context(), alice, channel, ts, "pack", "2"),
		"no button": s.Press(t.Context(), alice, channel, ts, "pick"),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	respond := func(opts ...slack.MsgOption) error {
		_, _, _, err := c.SendMessageContext(t.Context(), channel, opts...)
		return err
	}
	if err := respond(slack.MsgOptionReplaceOriginal(got.ResponseURL), slack.MsgOptionText("two", false)); err != nil {
		t.Fatal(err)
	}
	m := s.Ephemeral(channel, alice)[0]
	equal(t, "replaced", []string{m.Text, string(m.Blocks)}, []string{"two", ""})
	if err := respond(slack.MsgOptionResponseURL(got.ResponseURL, "ephemeral"),
		slack.MsgOptionText("more", false)); err != nil {
		t.Fatal(err)
	}
	equal(t, "messages", len(s.Ephemeral(channel, alice)), 2)
	if err := respond(slack.MsgOptionReplaceOriginal(got.ResponseURL)); err == nil {
		t.Error("replaced by nothing")
	}
	if err := respond(slack.MsgOptionDeleteOriginal(got.ResponseURL)); err != nil {
		t.Fatal(err)
	}
	equal(t, "what is left", s.Ephemeral(channel, alice)[0].Text, "more")
	_ = respond(slack.MsgOptionDeleteOriginal(got.ResponseURL)) // the fifth
	if err := respond(slack.MsgOptionDeleteOriginal(got.ResponseURL)); err == nil {
		t.Error("answered six times")
	}
	if err := respond(slack.MsgOptionDeleteOriginal(s.URL() + "/actions/T0ERRAND/made-up")); err == nil {
		t.Error("answered nothing")
	}
}

func TestLintMenu(t *testing.T) {
	t.Parallel()
	for element, want := range map[string]string{
		`"options":[]`: "no less than 1 items allowed [json-pointer:/blocks/0/elements/0/options]",
		`"options":[{"text":{"type":"mrkdwn","text":"x"},"value":""}]`: "unsupported type: mrkdwn [json-pointer:/blocks/0/elements/0/options/0/text/type]\n" +
			"must be more than 0 characters [json-pointer:/blocks/0/elements/0/options/0/value]",
	} {
		blocks := `[{"type":"actions","elements":[{"type":"static_select","action_id":"a",` + element + `}]}]`
		equal(t, element, strings.ReplaceAll(strings.Join(slackfake.Lint([]byte(blocks), "x"), "\n"),
			"invalid_blocks: ", ""), want)
	}
}
