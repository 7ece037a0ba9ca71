package web

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/store"
)

func TestHealthPage(t *testing.T) {
	t.Parallel()
	asked := 0
	h := newHarness(t, func(c *Config) {
		c.Inbound = []Inbound{quiet{}}
		c.Examine = func(context.Context) []store.Finding {
			asked++
			return []store.Finding{{What: "slack knows us"}, {Severity: store.Fatal, What: "a scope is missing", Remedy: "Add <it>."}}
		}
	})
	h.contains(h.get("/health"), http.StatusOK, "no worker is alive", "Start a worker", "appendonly is off", "Set appendonly yes", "slack: no event has come yet")
	beat := func(id, health string) {
		t.Helper()
		if err := h.Store.Beat(t.Context(), store.Worker{ID: id, Host: id + ".test", Health: json.RawMessage(health)}); err != nil {
			t.Fatal(err)
		}
	}
	beat("a", `{"ok":true,"version":"2.1.9","notices":["the <gateway> is off"]}`)
	h.contains(h.get("/health"), http.StatusOK, `class="banner warning"`, `id="a"`, "the CLI is version 2.1.9", "the &lt;gateway&gt; is off")
	beat("b", `{"ok":false,"problem":"claude has no credential","remedy":"set ANTHROPIC_API_KEY"}`)
	h.contains(h.get("/health"), http.StatusOK, "something to mend", "claude has no credential", "set ANTHROPIC_API_KEY", "!slack knows us")
	if asked > 0 {
		t.Error("the services were asked though nobody wanted to know")
	}
	a := h.get("/health?services=1")
	h.contains(a, http.StatusOK, "slack knows us", "Add &lt;it&gt;.", "!live.js") // it would ask them every 3 s
	if strings.Index(a.text, "a scope is missing") > strings.Index(a.text, "slack knows us") {
		t.Error("what has to be mended comes last")
	}
}

func TestChecksOfAWorker(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		worker store.Worker
		want   []string // severities and the first words
	}{
		"says nothing": {store.Worker{}, []string{"ok it takes tasks"}},
		"unreadable":   {store.Worker{Health: json.RawMessage(`[]`)}, []string{"error what it tells of its CLI cannot be read"}},
		"draining":     {store.Worker{Draining: true}, []string{"note it is shutting down"}},
		"well": {
			store.Worker{Health: json.RawMessage(`{"ok":true,"version":"2","logged_in":true,"method":"api_key","sandbox":"bwrap","gateway":true,"private":true}`)},
			[]string{
				"ok it takes tasks", "ok the CLI is version 2", "ok the CLI has a credential (api_key)", "ok runs are in a sandbox (bwrap)",
				"ok the model's credential is kept from runs", "ok the worker's memory and environment are kept from runs",
			},
		},
		"worst first": {
			store.Worker{Health: json.RawMessage(`{"version":"2","problem":"too old","sandbox":"none","notices":["look"]}`)},
			[]string{"error it can run no tasks: too old", "warning look", "note runs are not in a sandbox", "ok the CLI is version 2"},
		},
	} {
		var got []string
		for _, c := range checkWorker(test.worker) {
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
	f := fleet{
		Redis: "ok", Workers: []worker{{}}, Sources: []source{{"slack", now, ""}, {"github", now, "wrong secret"}},
		Findings:    []store.Finding{{Severity: store.Warning, What: "appendonly is off"}},
		Credentials: []store.Credential{{Name: "a", Until: now.Add(time.Hour), Why: "the limit"}, {Name: "b", Interval: time.Second}, {Name: "c", Until: now}},
	}
	var got []string
	for _, c := range f.check(now) {
		got = append(got, string(c.Severity)+" "+c.What)
	}
	want := []string{
		"error no events come from github", "error credential a: no run starts before 2026-01-02 04:04:05 UTC", "warning appendonly is off", "note credential b: runs start 1s apart", "ok slack: the last event came at 2026-01-02 03:04:05 UTC", "ok Redis answers",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
