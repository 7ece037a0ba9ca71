package slackfake_test

import (
	"testing"

	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"
)

const (
	channel = "C0GENERAL"
	alice   = "U0ALICE"
	bot     = "U0ERRAND"
)

// start gives a workspace and the real client library connected to it.
func start(t *testing.T, cfg slackfake.Config) (*slackfake.Server, *slack.Client) {
	t.Helper()
	s := slackfake.New(cfg)
	t.Cleanup(s.Close)
	return s, slack.New("xoxb-test", slack.OptionAPIURL(s.APIURL()))
}

// post lets the bot post and gives the ts.
func post(t *testing.T, c *slack.Client, opts ...slack.MsgOption) string {
	t.Helper()
	_, ts, err := c.PostMessageContext(t.Context(), channel, opts...)
	if err != nil {
		t.Fatalf("post: %v", err)
	}
	return ts
}

// seed lets Alice have said something and gives the ts.
func seed(t *testing.T, s *slackfake.Server, m slackfake.Message) string {
	t.Helper()
	m.Channel, m.User = channel, alice
	ts, err := s.Seed(m)
	if err != nil {
		t.Fatalf("seed: %v", err)
	}
	return ts
}

func texts(messages []slackfake.Message) []string {
	var out []string
	for _, m := range messages {
		out = append(out, m.Text)
	}
	return out
}

// want fails the test if the error is not the code of Slack.
func want(t *testing.T, what string, err error, code string) {
	t.Helper()
	if err == nil || err.Error() != code {
		t.Errorf("%s: error %v, want %s", what, err, code)
	}
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestTokenIsAFormFieldOrABearerHeader(t *testing.T) {
	t.Parallel()
	s, c := start(t, slackfake.Config{})
	if _, err := c.AuthTestContext(t.Context()); err != nil { // slack-go sends the form field here
		t.Errorf("form field: %v", err)
	}
	ts := post(t, c, slack.MsgOptionText("hi", false))
	// slack-go sends the header here, in a GET.
	if _, err := c.GetPermalinkContext(t.Context(), &slack.PermalinkParameters{Channel: channel, Ts: ts}); err != nil {
		t.Errorf("header: %v", err)
	}
	_, err := slack.New("xoxb-other", slack.OptionAPIURL(s.APIURL())).AuthTestContext(t.Context())
	want(t, "other token", err, "invalid_auth")
	_, err = slack.New("", slack.OptionAPIURL(s.APIURL())).AuthTestContext(t.Context())
	want(t, "no token", err, "not_authed")
}

func TestUnknownMethod(t *testing.T) {
	t.Parallel()
	s, c := start(t, slackfake.Config{})
	_, err := c.GetEmojiContext(t.Context())
	want(t, "emoji.list", err, "unknown_method")
	if n := len(s.Calls("emoji.list")); n != 1 {
		t.Errorf("%d calls recorded, want 1: what we do not model must be seen", n)
	}
}
