package web

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
)

const pageEvents = 500 // on a page, as in console

var olderLink = regexp.MustCompile(`id="older" href="([^"]+)"`)

// older returns the URL of a page's older events, or "".
func older(a answer) string {
	if m := olderLink.FindStringSubmatch(a.text); m != nil {
		return strings.ReplaceAll(m[1], "&amp;", "&")
	}
	return ""
}

// A page shows the latest events and links back to the first one, and from there to the older part of the log.
func TestOlderEventsThenTheLog(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.submit(1)
	c := h.Claim(id)
	h.Append(c, agent.Event{Kind: agent.Text, Text: "call -1.", Time: time.Date(2026, 11, 2, 0, 0, 1, 0, time.UTC)})
	for n := range pageEvents + 1 {
		h.Append(c, agent.Event{Kind: agent.ToolUse, ToolID: fmt.Sprint(n), Text: fmt.Sprintf("call %d.", n)})
	}
	log := "# errand x\n# started 2026-11-01T23:58:00Z\n23:59:00.000 the first\n"
	for n := range 2000 {
		log += fmt.Sprintf("23:59:01.000 line %d of the log <b>\n             goes on\n", n)
	}
	log += "00:00:00.500 the last\n00:00:02.000 told by the events\n"
	h.log(id+".log", log)

	a := h.get("/tasks/" + id)
	h.contains(a, http.StatusOK, "!call 0.", "call 1.", fmt.Sprintf("call %d.", pageEvents), "data-events")
	a = h.get(older(a))
	h.contains(a, http.StatusOK, "call -1.", "call 0.", "!call 1.", "!data-events")
	a = h.get(older(a))
	h.contains(a, http.StatusOK, "the last", "told by", "line 1999 of the log &lt;b&gt;", "!the first")
	pages, shown := 1, strings.Count(a.text, "of the log")
	for older(a) != "" {
		a = h.get(older(a))
		pages, shown = pages+1, shown+strings.Count(a.text, "of the log")
	}
	if h.contains(a, http.StatusOK, "# errand x", "the first", "line 0 "); shown != 2000 || pages < 3 {
		t.Errorf("%d lines on %d pages, want 2000", shown, pages)
	}
	for _, bad := range []string{"?before=x", "/log?before=x", "/log?before=1.5"} {
		h.contains(h.get("/tasks/"+id+bad), http.StatusBadRequest)
	}
}

// The log page should read logs of other workers and saved logs like files, and say if no log exists.
func TestLogPageOfALogElsewhere(t *testing.T) {
	t.Parallel()
	h := newHarness(t, asksWorkers)
	id := h.submit(1)
	h.contains(h.get("/tasks/"+id+"/log", "Accept", "text/html"), http.StatusNotFound, "<h1>No log</h1>")
	c := h.Claim(id)
	text := strings.Repeat("12:00:00.000 kept\n", 4000)
	h.keep(c, tasks.PeopleLog, text)
	h.End(c, tasks.Ending{Kind: tasks.Answered, Result: agent.Result{Text: "ok"}})
	pages := func(place string) {
		t.Helper()
		a, shown := h.get("/tasks/"+id+"/log"), 0
		for {
			shown += strings.Count(a.text, "kept\n")
			if older(a) == "" {
				break
			}
			a = h.get(older(a))
		}
		if shown != 4000 {
			t.Errorf("%s: %d lines of 4000", place, shown)
		}
	}
	pages("store")
	h.machine("worker-1", nil).log(t, id+"."+tasks.PeopleLog, text)
	pages("worker")
	h.contains(h.get(fmt.Sprintf("/tasks/%s/log?before=%d", id, 2*len(text))), http.StatusOK, "!kept") // it is shorter
}

// The page shows the usage of a run while it runs and after it has ended.
func TestMeter(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.submit(1)
	c := h.Claim(id)
	h.contains(h.get("/tasks/"+id), http.StatusOK, "data-since=", "!tokens in")
	h.Append(c, agent.Event{Kind: agent.Used, CostUSD: 0.004, Usage: &agent.Usage{Input: 900}},
		agent.Event{Kind: agent.Used, CostUSD: 0.42, Usage: &agent.Usage{
			Input: 200, CacheRead: 12_000, CacheCreation: 100, Output: 999,
		}})
	h.contains(h.get("/tasks/"+id), http.StatusOK, "12.3k tokens in, 999 out", "$0.42")
	h.End(c, tasks.Ending{
		Kind: tasks.Answered, Bill: tasks.Bill{Earlier: 1},
		Result: agent.Result{
			Text: "ok", Duration: 62 * time.Second, CostUSD: 0.5, Usage: agent.Usage{Input: 2_000_000, Output: 1},
		},
	})
	h.contains(h.get("/tasks/"+id), http.StatusOK, "1m2s", "2.0M tokens in, 1 out", "$1.50", "!data-since=")
}
