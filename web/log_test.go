package web

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLogsOfThisMachine(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.submit(1)
	h.log(id+".log", "12:00:00.000 <b>said</b>\n")
	h.log(id+".ndjson", `{"type":"system"}`+"\n")
	for query, want := range map[string][2]string{
		"":       {"text/plain; charset=utf-8", "12:00:00.000 <b>said</b>\n"},
		"?raw=0": {"text/plain; charset=utf-8", "12:00:00.000 <b>said</b>\n"},
		"?raw=1": {"application/x-ndjson", `{"type":"system"}` + "\n"},
	} {
		a := h.get("/api/tasks/" + id + "/log" + query)
		if got := [2]string{a.Header.Get("Content-Type"), a.text}; a.StatusCode != http.StatusOK || got != want {
			t.Errorf("%q: %s %q", query, a.Status, got)
		}
		if a.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%q: a browser could sniff its type", query)
		}
	}
	if a := h.get("/api/tasks/"+id+"/log", "Range", "bytes=-5"); a.StatusCode != http.StatusPartialContent ||
		a.text != "</b>\n" {
		t.Errorf("the tail is %s %q", a.Status, a.text)
	}
	_ = h.redis.Close()
	if a := h.get("/api/tasks/" + id + "/log"); a.StatusCode != http.StatusOK {
		t.Errorf("without Redis: %s", a.Status)
	}
}

func TestLogsOfElsewhere(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.submit(1)
	if detail := h.problem(h.get("/api/tasks/"+id+"/log"), http.StatusNotFound); !strings.Contains(detail,
		"has not run") {
		t.Errorf("before it ran: %s", detail)
	}
	h.Claim(id)
	if detail := h.problem(h.get("/api/tasks/"+id+"/log?raw=1"), http.StatusNotFound); !strings.Contains(detail,
		"worker-1, as "+id+".ndjson") {
		t.Errorf("the detail does not say where the log is: %s", detail)
	}
	h.log("secret", "x")
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("outside"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(h.logs, id+".log")); err != nil {
		t.Fatal(err)
	}
	h.problem(h.get("/api/tasks/"+id+"/log"), http.StatusNotFound)
}

func TestProcessWithoutLogs(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(c *Config) { c.LogDir = "" })
	h.problem(h.get("/api/tasks/"+h.submit(1)+"/log"), http.StatusNotFound)
}
