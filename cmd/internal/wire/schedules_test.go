package wire

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/slackfake"
)

// A schedule that an operator makes through the API runs on a worker, and its answer is one message in its channel.
func TestScheduleToSlack(t *testing.T) {
	t.Parallel()
	w := newRightsWorld(t)
	w.work()
	const channel = "C0NIGHTLY"
	put := func() {
		t.Helper()
		body := `{"when": "every hour", "prompt": "Sum up.", "repo": "` + secret + `", "profile": "read", "results": "` + channel + `"}`
		resp := w.request(http.DefaultClient, http.MethodPut, "/api/schedules/nightly", consoleToken, body)
		defer func() { _ = resp.Body.Close() }()
		if said, err := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK || err != nil || !strings.Contains(string(said), `"next"`) {
			t.Fatalf("status %d: %s, %v", resp.StatusCode, said, err)
		}
	}
	put()
	err := w.door.Store.Memos.ChangeMemo(t.Context(), "schedule/nightly", func(body json.RawMessage) (json.RawMessage, error) {
		var state map[string]any
		if err := json.Unmarshal(body, &state); err != nil {
			return nil, err
		}
		state["last"] = time.Now().Add(-2 * time.Hour)
		return json.Marshal(state)
	})
	if err != nil {
		t.Fatal(err)
	}
	put() // the front door looks at once
	if err := w.slack.Wait(t.Context(), func(s *slackfake.Server) bool { return len(s.Messages(channel, "")) > 0 }); err != nil {
		t.Fatal(err)
	}
	if all := w.slack.Messages(channel, ""); len(all) != 1 || !strings.Contains(all[0].Text, "Schedule nightly") {
		t.Errorf("posted %+v", all)
	}
}
