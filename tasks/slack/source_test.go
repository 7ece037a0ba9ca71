package slack

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestNewSaysAllThatIsWrong(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"https://slack.example/api", "api/", ":"} {
		_, err := New(Config{APIURL: url})
		if err == nil || strings.Count(err.Error(), "\n") != 1 || !strings.Contains(err.Error(), "slash") ||
			!strings.Contains(err.Error(), "token") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// A worker posts without the signing secret, and nothing listens without it.
func TestListenNeedsASecret(t *testing.T) {
	t.Parallel()
	s, err := New(Config{Token: "xoxb-1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Listen(t.Context(), http.NewServeMux(), nil); err == nil ||
		!strings.Contains(err.Error(), "neither a signing secret nor an app token") {
		t.Errorf("got %v", err)
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	s, err := New(Config{Token: "xoxb-1", SigningSecret: "s"})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "name", s.Name(), "slack")
	equal(t, "API", s.files.api.String(), "https://slack.com/api/")
	equal(t, "interval", s.interval, 3*time.Second)
	equal(t, "time for an answer", submitLimit < 3*time.Second, true)
	equal(t, "links", len(s.reporter.console.LogButton("1")), 0)
	if s, err = New(Config{Token: "xoxb-1", SigningSecret: "s", ConsoleURL: "https://e.example/x/"}); err != nil {
		t.Fatal(err)
	}
	equal(t, "link", s.reporter.console.LogButton("1-slack-c1")[0].URL, "https://e.example/x/tasks/1-slack-c1")
}

// Concurrent calls reuse the connections of earlier ones.
func TestConnectionsAreKept(t *testing.T) {
	t.Parallel()
	var dialled atomic.Int64
	var together sync.WaitGroup // all calls of a round are under way before the first is answered
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		together.Done()
		together.Wait()
		_, _ = io.WriteString(w, `{"ok":true}`)
	}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			dialled.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	s, err := New(Config{Token: "xoxb-1", SigningSecret: "s", APIURL: server.URL + "/api/"})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		together.Add(maxPressing)
		var all sync.WaitGroup
		for range maxPressing {
			all.Go(func() { s.react(t.Context(), origin{Channel: general, TS: "1700000000.000100"}, eyes) })
		}
		all.Wait()
	}
	// A connection may come back a moment after its answer. Without keeping them, each round would make nearly all anew.
	if n := dialled.Load(); n >= 2*maxPressing {
		t.Errorf("%d connections for three rounds of %d calls", n, maxPressing)
	}
}
