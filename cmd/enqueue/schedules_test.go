package main

import (
	"encoding/json"
	"strings"
	"testing"

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
	for _, want := range []string{
		"paused since 2026-05-03 07:10 UTC", "1777791600000000-schedule-deps", "every day at 07:00", "acme/api",
	} {
		if code, out, errs := f.run("schedules"); code != 0 || !strings.Contains(out, want) {
			t.Errorf("exit %d without %s: %s%s", code, want, out, errs)
		}
	}
	if code, out, errs := f.run("schedules", "resume", "deps"); code != 0 ||
		!strings.HasPrefix(out, "deps starts its next task at ") || !strings.HasSuffix(out, " 07:00 UTC\n") {
		t.Errorf("resume: exit %d, %s%s", code, out, errs)
	}
	var l api.Schedules
	if code, out, _ := f.run("schedules", "-json"); code != 0 || json.Unmarshal([]byte(out), &l) != nil ||
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

// A schedule is made, changed and removed through a real front door.
func TestMadeSchedules(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	for _, prompt := range [][]string{{"Sum", "up."}, {"Sum up the day."}} {
		args := append([]string{
			"schedules", "-when", "every day at 07:00", "-repo", "acme/api", "-profile", "read", "set", "daily",
		}, prompt...)
		if code, out, errs := f.run(args...); code != 0 || !strings.HasPrefix(out, "daily starts its next task at ") {
			t.Fatalf("set: exit %d, %s%s", code, out, errs)
		}
	}
	var l api.Schedules
	if code, out, errs := f.run("schedules", "-json"); code != 0 || json.Unmarshal([]byte(out), &l) != nil ||
		len(l.Schedules) != 2 {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	if made := l.Schedules[1]; made.Name != "daily" || made.Prompt != "Sum up the day." || made.Repo != "acme/api" ||
		made.Profile != "read" || made.By == "" {
		t.Errorf("made %+v", made)
	}
	err := f.Store.Memos.ChangeMemo(t.Context(), "schedule/daily", func(body json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(strings.Replace(string(body), "{", `{"paused":"2026-05-03T07:10:00Z",`, 1)), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	code, out, errs := f.run("schedules", "-when", "every day at 07:00", "-repo", "acme/api", "set", "daily", "Better.")
	if code != 0 || out != "daily is paused: enqueue schedules resume daily\n" {
		t.Errorf("set while it is paused: exit %d, %s%s", code, out, errs)
	}
	if code, _, errs := f.run("schedules", "-when", "at noon", "set", "daily", "Go."); code != 1 ||
		!strings.Contains(errs, "Write it like") {
		t.Errorf("other times: exit %d, %s", code, errs)
	}
	if code, _, errs := f.run("schedules", "rm", "deps"); code != 1 || !strings.Contains(errs, "is in errand.yaml") {
		t.Errorf("remove one of errand.yaml: exit %d, %s", code, errs)
	}
	if code, out, errs := f.run("schedules", "rm", "daily"); code != 0 || out != "" {
		t.Errorf("remove: exit %d, %s%s", code, out, errs)
	}
	if code, _, errs := f.run("schedules", "rm", "daily"); code != 1 ||
		!strings.Contains(errs, "There is no schedule with this name") {
		t.Errorf("remove again: exit %d, %s", code, errs)
	}
}
