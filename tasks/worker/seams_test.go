package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/taskstest/toy"
	"github.com/errand-fleet/errand/workspace"
)

// The public seams are enough for another chat and another code host.
func TestToys(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	hub := &toy.Forge{Dir: r.root, Writers: []string{"ann"}}
	chat := toy.Chat{Room: &toy.Place{Posted: make(chan string, 10)}}
	issues := toy.Issues{Forge: hub, Thread: &toy.Place{Posted: make(chan string, 10)}}
	r.agent.do = func(_ context.Context, s agent.Spec, _ agent.Host) (agent.Result, error) {
		if strings.Contains(s.Prompt.Text, "mend") {
			// Of another size: git may take a file of the same size for unchanged within a tick of the clock.
			r.write(s.Dir, "README.md", "mended by the toy\n")
		}
		return answer("Done: " + s.Prompt.Text), nil
	}
	r.worker(func(c *Config) {
		c.Sources, c.Publisher = []tasks.Source{chat, issues}, hub
		var err error
		c.Workspace, err = workspace.New(workspace.Config{
			Dir: filepath.Join(t.TempDir(), "w"), URL: hub.CloneURL, Credential: hub.Credential,
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	mux := http.NewServeMux()
	for _, s := range []desk.Listener{chat, issues} {
		if err := s.Listen(t.Context(), mux, r.desk); err != nil {
			t.Fatal(err)
		}
	}
	send := func(path string, event map[string]any, from *toy.Place) string {
		t.Helper()
		event["at"] = time.UnixMicro(1_700_000_000_000_000)
		body, err := json.Marshal(event)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second time is no second task
			w := httptest.NewRecorder()
			mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", path, bytes.NewReader(body)))
			if w.Code != http.StatusOK {
				t.Fatalf("%s: %d %s", path, w.Code, w.Body)
			}
		}
		select {
		case said := <-from.Posted:
			return said
		case <-await.Context(t).Done():
			t.Fatal("no final message")
			return ""
		}
	}

	said := send("/toychat", map[string]any{"id": "1", "author": "ann", "text": "hello", "thread": "a"}, chat.Room)
	if said != "Done: hello" {
		t.Errorf("in the chat: %q", said)
	}
	wish := map[string]any{"id": "2", "author": "ann", "body": "@errand mend it", "repo": "acme/api", "issue": 3}
	said = send("/toyforge", wish, issues.Thread)
	if !strings.Contains(said, "Done: mend it") || !strings.Contains(said, "https://toy.example/acme/api/pull/1") {
		t.Errorf("on the issue: %q", said)
	}
	pulls, err := hub.PullRequests(t.Context(), "acme/api")
	if err != nil || len(pulls) != 1 || !pulls[0].Draft || pulls[0].Base != "main" {
		t.Errorf("pull requests %+v, %v", pulls, err)
	}
	said = send("/toyforge", map[string]any{
		"id": "3", "author": "bob", "body": "@errand mend it", "repo": "acme/api", "issue": 4,
	}, issues.Thread)
	if said != "You cannot push to this repository." {
		t.Errorf("to someone who may not: %q", said)
	}
}
