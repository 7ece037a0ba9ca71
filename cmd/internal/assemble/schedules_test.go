package assemble

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/fake/slackfake"
)

// A schedule whose time was missed runs on a worker once, with two front doors, and its answer is one message in its
// channel.
func TestScheduleToSlack(t *testing.T) {
	t.Parallel()
	daily := time.Now().UTC().Add(-time.Hour).Format("4 15 * * *") // again long after the test
	w := newRightsWorld(t, fmt.Sprintf(`
schedules: {nightly: {when: %q, prompt: Sum up., repository: %s, profile: read, results: %s}}`, daily, secret, theirs))
	w.work()
	missed, err := json.Marshal(map[string]any{
		"when": daily, "last": time.Now().Add(-2 * time.Hour), "kept": time.Now(),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.door.Store.Memos.ChangeMemo(t.Context(), "schedule/nightly",
		func(json.RawMessage) (json.RawMessage, error) { return missed, nil }); err != nil {
		t.Fatal(err)
	}
	door, err := w.parts().FrontDoor(t.Context()) // looks at once
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = door.Close() })
	if err := w.slack.Wait(t.Context(), func(s *slackfake.Server) bool {
		return len(s.Messages(theirs, "")) > 0
	}); err != nil {
		t.Fatal(err)
	}
	w.outcome(t, "Sum up.")
	for left := 1; left > 0; {
		backlog, err := w.door.Store.Outbox.Backlog(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		left = backlog.Endings
		<-time.After(10 * time.Millisecond)
	}
	if all := w.slack.Messages(theirs, ""); len(all) != 1 || !strings.Contains(all[0].Text, "Schedule nightly") {
		t.Errorf("posted %+v", all)
	}
}
