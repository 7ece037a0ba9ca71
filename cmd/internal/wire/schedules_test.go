package wire

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/errand-fleet/errand/tasks"
)

// putSchedule makes the schedule nightly in the private repository, and returns the status and the response. A front
// door that has stored a schedule looks at once.
func (w *rightsWorld) putSchedule(client *http.Client, token, profile, results string) (status int, said string) {
	w.Helper()
	body := fmt.Sprintf(`{"when": "every hour", "prompt": "Sum up.", "repo": %q, "profile": %q, "results": %q}`, secret,
		profile, results)
	resp := w.request(client, http.MethodPut, "/api/schedules/nightly", token, body)
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// missed makes the schedule nightly have missed a time.
func (w *rightsWorld) missed() {
	w.Helper()
	err := w.door.Store.Memos.ChangeMemo(w.Context(), "schedule/nightly",
		func(body json.RawMessage) (json.RawMessage, error) {
			var state map[string]any
			if err := json.Unmarshal(body, &state); err != nil {
				return nil, err
			}
			state["last"] = time.Now().Add(-2 * time.Hour)
			return json.Marshal(state)
		})
	if err != nil {
		w.Fatal(err)
	}
}

// until waits for a condition.
func (w *rightsWorld) until(done func() bool) {
	w.Helper()
	for !done() {
		select {
		case <-w.Context().Done():
			w.Fatal("the test has ended")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// A schedule that an operator makes through the API runs on a worker, and its answer is one message in its channel,
// which the operator of the fleet has listed for its private repository.
func TestScheduleToSlack(t *testing.T) {
	t.Parallel()
	w := newRightsWorld(t)
	w.work()
	const why = secret + " is private, and its answers may not be posted in " + elsewhere + "."
	if status, said := w.putSchedule(http.DefaultClient, consoleToken,
		"read", elsewhere); status != http.StatusUnprocessableEntity || !strings.Contains(said, why) {
		t.Errorf("to another channel: status %d: %s", status, said)
	}
	for n := range 2 {
		if n > 0 {
			w.missed()
		}
		if status, said := w.putSchedule(http.DefaultClient, consoleToken, "read", theirs); status != http.StatusOK ||
			!strings.Contains(said, `"next"`) {
			t.Fatalf("status %d: %s", status, said)
		}
	}
	if err := w.slack.Wait(t.Context(), func(s *slackfake.Server) bool {
		return len(s.Messages(theirs, "")) > 0
	}); err != nil {
		t.Fatal(err)
	}
	w.outcome(t, "Sum up.")
	w.until(func() bool {
		left, err := w.door.Store.Outbox.Backlog(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return left.Endings == 0
	})
	if all := w.slack.Messages(theirs, ""); len(all) != 1 || !strings.Contains(all[0].Text, "Schedule nightly") {
		t.Errorf("posted %+v", all)
	}
	if n := len(w.slack.Messages(elsewhere, "")); n > 0 {
		t.Errorf("%d messages elsewhere", n)
	}
}

// A schedule does what its maker may do on GitHub: when it is made, and when its tasks run.
func TestScheduleOfAnOperator(t *testing.T) {
	t.Parallel()
	w := newRightsWorld(t)
	w.github.SetPermission(secret, "reader", "read")
	w.github.SetPermission(secret, "writer", "write")
	reader, writer := w.login("reader"), w.login("writer")
	if status, said := w.putSchedule(reader, "", "write", ""); status != http.StatusUnprocessableEntity ||
		!strings.Contains(said, "reader may only read "+secret+".") {
		t.Errorf("write of a reader: status %d: %s", status, said)
	}
	if status, said := w.putSchedule(reader, "", "read", ""); status != http.StatusOK ||
		!strings.Contains(said, `"login": "reader"`) {
		t.Errorf("read of a reader: status %d: %s", status, said)
	}
	for n := range 2 {
		if n > 0 {
			w.missed()
		}
		if status, said := w.putSchedule(writer, "", "write", ""); status != http.StatusOK {
			t.Fatalf("write of a writer: status %d: %s", status, said)
		}
	}
	w.until(func() bool {
		list, err := w.door.Desk.List(t.Context(), tasks.Filter{Text: "Sum up."})
		if err != nil {
			t.Fatal(err)
		}
		return len(list.Tasks) > 0
	})
	w.github.SetPermission(secret, "writer", "none")
	w.work()
	if profile, why := w.outcome(t, "Sum up."); profile != "" || why != "writer has no access to "+secret+"." {
		t.Errorf("after the access was taken away: profile %q, refused %q", profile, why)
	}
}
