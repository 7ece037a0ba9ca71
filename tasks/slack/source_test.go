package slack

import (
	"strings"
	"testing"
	"time"
)

func TestNewSaysAllThatIsWrong(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"https://slack.example/api", "api/", ":"} {
		_, err := New(Config{APIURL: url})
		if err == nil || strings.Count(err.Error(), "\n") != 2 || !strings.Contains(err.Error(), "slash") ||
			!strings.Contains(err.Error(), "token") || !strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	s, err := New(Config{Token: "xoxb-1", SigningSecret: "s"})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "name", s.Name(), "slack")
	equal(t, "API", s.cfg.APIURL, "https://slack.com/api/")
	equal(t, "interval", s.cfg.Interval, 3*time.Second)
	equal(t, "time for an answer", s.submitLimit < 3*time.Second, true)
	equal(t, "link", s.link("1", "Log"), "")
	if s, err = New(Config{Token: "xoxb-1", SigningSecret: "s", ConsoleURL: "https://e.example/x/"}); err != nil {
		t.Fatal(err)
	}
	equal(t, "link", s.link("1-slack-c1", "Log"), "<https://e.example/x/tasks/1-slack-c1|Log>")
}
