package view

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/google/go-cmp/cmp"
)

func TestChecksOfAWorker(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		worker store.Worker
		want   []string // severities and the first words
	}{
		"says nothing": {store.Worker{}, []string{"ok it takes tasks"}},
		"unreadable": {
			store.Worker{Health: json.RawMessage(`[]`)}, []string{"error the report on its CLI cannot be read"},
		},
		"has no Slack": {
			store.Worker{Sources: []string{"github"}}, []string{"note it runs no tasks of slack", "ok it takes tasks"},
		},
		"draining": {store.Worker{Draining: true}, []string{"note it is shutting down"}},
		"well": {
			store.Worker{Health: json.RawMessage(`{"ok":true,"version":"2","logged_in":true,"method":"api_key","keeper":"/bin/errand-keeper","posture":"sandboxed","gateway":true,"private":true}`)},
			[]string{
				"ok it takes tasks", "ok the CLI is version 2", "ok the CLI has a credential (api_key)",
				"ok the keeper of each run is a separate program", "ok the posture of runs is: sandboxed",
				"ok runs cannot read the model credential", "ok runs cannot read the worker's memory and environment",
			},
		},
		"worst first": {
			store.Worker{Health: json.RawMessage(`{"version":"2","problem":"too old","posture":"shared","notices":["look"]}`)},
			[]string{
				"error it cannot run tasks: too old", "warning look", "note the posture of runs is: shared",
				"ok the CLI is version 2",
			},
		},
	} {
		var got []string
		for _, c := range checkWorker(test.worker, []string{"github", "slack"}) {
			got = append(got, string(c.Severity)+" "+c.What)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestChecksOfTheRest(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f := Fleet{
		Redis: "ok", Workers: []Worker{{Version: "v1"}, {Version: "v2"}}, unserved: map[string]int{"slack": 2},
		Sources:  []Source{{"slack", now, ""}, {"github", now, "wrong secret"}},
		Findings: []store.Finding{{Severity: store.Warning, What: "Redis runs without appendonly"}},
		Credentials: []store.Credential{
			{Name: "a", Until: now.Add(time.Hour), Why: "the limit"},
			{Name: "b", Interval: time.Second},
			{Name: "c", Until: now},
		},
	}
	var got []string
	for _, c := range f.check(now) {
		got = append(got, string(c.Severity)+" "+c.What)
	}
	want := []string{
		"error no events arrive from github", "error no worker is set up for slack; waiting tasks: 2",
		"error credential a: no run starts before 2026-01-02 04:04:05 UTC", "warning Redis runs without appendonly",
		"note workers run different versions: v1, v2", "note credential b: runs start 1s apart",
		"ok slack: the last event arrived at 2026-01-02 03:04:05 UTC", "ok Redis answers",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Answers that people do not have are found, but not those that are just being posted.
func TestChecksOfAnswers(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, test := range map[string]struct {
		unposted store.Unposted
		want     []string
	}{
		"just posted": {store.Unposted{Endings: 3, Oldest: now.Add(-30 * time.Second)}, nil},
		"refused": {
			store.Unposted{Endings: 2, Oldest: now.Add(-90 * time.Second), Why: "Slack says not_in_channel"},
			[]string{"answers are not posted yet: 2, the oldest for 1m; The oldest one: Slack says not_in_channel. It is tried for a day."},
		},
		"untried": {
			store.Unposted{Endings: 1, Oldest: now.Add(-2 * time.Minute)},
			[]string{"answers are not posted yet: 1, the oldest for 2m; The oldest one: no worker has tried. It is tried for a day."},
		},
		"given up": {
			store.Unposted{GivenUp: 1, LastGivenUp: "1-slack-x"},
			[]string{"answers of the last day that were not delivered: 1; The latest one is of task 1-slack-x."},
		},
	} {
		var got []string
		for _, c := range (Fleet{unposted: test.unposted}).checkAnswers(now) {
			got = append(got, c.What+"; "+c.Why)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
