package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/web/api"
)

// A paused schedule is listed as such and resumed through a real front door.
func TestSchedules(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	state := json.RawMessage(`{"when":"every day at 07:00","last":"2026-05-03T07:00:00Z","task":"1777791600000000-schedule-deps","failures":3,"paused":"2026-05-03T07:10:00Z","kept":"2026-05-03T07:10:00Z"}`)
	err := f.Store.Memos.ChangeMemo(t.Context(), "schedule/deps", func(json.RawMessage) (json.RawMessage, error) {
		return state, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	since := time.Date(2026, 5, 3, 7, 10, 0, 0, time.UTC).Local()
	for _, want := range []string{
		"paused since " + since.Format("2006-01-02 15:04 -0700"), display.TaskID("1777791600000000-schedule-deps"), "every day at 07:00", "acme/api",
	} {
		if code, out, errs := f.run("schedules"); code != 0 || !strings.Contains(out, want) {
			t.Errorf("exit %d without %s: %s%s", code, want, out, errs)
		}
	}
	if code, out, errs := f.run("schedules", "resume", "deps"); code != 0 ||
		!strings.HasPrefix(out, "deps starts its next task at ") || !strings.Contains(out, ":00 ") {
		t.Errorf("resume: exit %d, %s%s", code, out, errs)
	}
	var l api.Schedules
	if code, out, _ := f.run("schedules", "--json"); code != 0 || json.Unmarshal([]byte(out), &l) != nil ||
		len(l.Schedules) != 1 || !l.Schedules[0].Paused.IsZero() {
		t.Errorf("exit %d: %s", code, out)
	}
	if code, _, errs := f.run("schedules", "resume", "none"); code != 1 ||
		!strings.Contains(errs, "There is no schedule with this name") {
		t.Errorf("none: exit %d, %s", code, errs)
	}
	if code, _, _ := f.run("schedules", "deps"); code != 2 {
		t.Errorf("without a verb: exit %d", code)
	}
}
