package slackfake_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/slack-go/slack"

	"github.com/errand-fleet/errand/internal/fake/slackfake"
)

// Commands and shortcuts arrive in the form that slack-go reads, by either way, with an address for the answer.
func TestCommandAndShortcut(t *testing.T) {
	t.Parallel()
	s, c := start(t, slackfake.Config{})
	a := dial(t, s, always)
	if err := s.Command(t.Context(), alice, "G0OTHER", "/do", "it"); err != nil {
		t.Fatal(err)
	}
	said, _ := (<-a.events).Data.(slack.SlashCommand)
	check := func(said slack.SlashCommand) {
		t.Helper()
		equal(t, "command", []string{said.Command, said.Text, said.UserID, said.ChannelID, said.TeamID},
			[]string{"/do", "it", alice, "G0OTHER", "T0ERRAND"})
	}
	check(said)
	_, _, _, err := c.SendMessageContext(t.Context(), "", slack.MsgOptionText("done", false),
		slack.MsgOptionResponseURL(said.ResponseURL, slack.ResponseTypeEphemeral))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "answer", texts(s.Ephemeral("G0OTHER", alice)), []string{"done"})

	web := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		said, _ = slack.SlashCommandParse(r)
	}))
	t.Cleanup(web.Close)
	s.Commands(web.URL)
	said = slack.SlashCommand{}
	if err := s.Command(t.Context(), alice, "G0OTHER", "/do", "it"); err != nil {
		t.Fatal(err)
	}
	check(said)

	ts := post(t, c, slack.MsgOptionText("x", false))
	if err := s.Shortcut(t.Context(), alice, channel, ts, "ask"); err != nil {
		t.Fatal(err)
	}
	got, _ := (<-a.events).Data.(slack.InteractionCallback)
	equal(t, "shortcut", []string{
		string(got.Type), got.CallbackID, got.User.ID, got.Channel.ID, got.MessageTs, got.Message.Text,
	},
		[]string{"message_action", "ask", alice, channel, ts, "x"})
	if _, err := c.OpenViewContext(t.Context(), got.TriggerID, dialog()); err != nil {
		t.Error(err)
	}
	for _, err := range []error{
		s.Command(t.Context(), alice, "X0", "/do", "it"), s.Shortcut(t.Context(), alice, channel, "1.0", "ask"),
	} {
		if err == nil {
			t.Error("something that does not exist was used")
		}
	}
}
