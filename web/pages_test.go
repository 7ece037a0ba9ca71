package web

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/tasks"
)

func TestListPage(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.contains(h.get("/"), http.StatusOK, "No tasks yet")
	first := h.submit(0, func(t *tasks.Task) { t.Prompt = "The oldest" })
	h.End(h.Claim(first), tasks.Ending{Kind: tasks.TimedOut, Result: agent.Result{CostUSD: 1.234}})
	h.contains(h.get("/"), http.StatusOK, `href="/tasks/`+first+`"`, "The oldest", "timed_out", "$1.23", "test",
		"ann", "!>older<")
	h.contains(h.get("/?state=waiting"), http.StatusOK, "No task matches: <b>waiting</b>.")
	for n := range 50 {
		h.submit(1 + n)
	}
	next := "before=" + tasks.NewID(time.UnixMicro(1700000000000001), "test", "x")
	h.contains(h.get("/?text=o"), http.StatusOK, "!The oldest", `href="/?`+next+`&amp;text=o"`, `href="/fleet"`)
	h.contains(h.get("/?text=o&"+next), http.StatusOK, "The oldest", `href="/?text=o">newest`)
	h.contains(h.get("/?state=x"), http.StatusBadRequest)
}

func TestTaskPageWhileItRuns(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.submit(1, func(t *tasks.Task) { t.Repo = "acme/app" })
	path := "/tasks/" + id
	h.contains(h.get(path), http.StatusOK, "waiting", "Do it", "acme/app", `action="`+path+`/cancel"`,
		"/static/task.js", "!/retry")
	c := h.Claim(id)
	h.Append(c,
		agent.Event{Kind: agent.Text, Text: "I will "}, agent.Event{Kind: agent.Text, Text: "look."},
		agent.Event{Kind: agent.ToolUse, Tool: "Read", Text: "Reading main.go", Parent: "toolu_1"},
		agent.Event{Kind: agent.TurnEnd, Text: "told before"},
	)
	var last string
	for l, err := range h.Desk.Follow(t.Context(), id, "") {
		if last = l.ID; err != nil || l.Event.Kind == agent.TurnEnd {
			break
		}
	}
	// The page without a script, and where the script continues.
	h.contains(h.get(path), http.StatusOK, "running", ">I will look.<", "Reading main.go", "!told before", "worker-1",
		`data-events="/api/tasks/`+id+`/events" data-after="`+last+`"`, "enqueue logs -f "+display.TaskID(id))

	// After Stop the page shows at once that the task is stopping.
	h.do("POST", path+"/cancel", "", "Content-Type", "application/x-www-form-urlencoded")
	h.contains(h.get(path), http.StatusOK, `class="state stopping">Stopping</span>`,
		"!class=\"state running", "!/cancel")
	h.contains(h.get("/"), http.StatusOK, `class="state stopping">Stopping</span>`)

	h.End(c, tasks.Ending{Kind: tasks.Failed, Reason: "It broke.", Result: agent.Result{Partial: "half of it"}})
	h.contains(h.get(path), http.StatusOK, "failed", "It broke.", "half of it", `action="`+path+`/retry"`,
		"!data-events", "!/cancel")
}

func TestButtons(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.submit(1)
	press := func(button string) answer {
		return h.do("POST", "/tasks/"+id+"/"+button, "", "Accept", "text/html", "Origin", h.server.URL)
	}
	state := func() string {
		s, err := h.Desk.Status(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return s.State
	}
	h.contains(press("retry"), http.StatusConflict, "<h1>Not ended</h1>")
	for _, step := range [][2]string{{"cancel", "ended"}, {"retry", "waiting"}} {
		a := press(step[0])
		if a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != "/tasks/"+id || state() != step[1] {
			t.Errorf("%s: %s to %s, and the task is %s", step[0], a.Status, a.Header.Get("Location"), state())
		}
	}
}

// Text of people and agents is escaped everywhere.
func TestEverythingIsEscaped(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	const evil = `<script>alert(1)</script>"' onload=x`
	id := h.submit(1, func(t *tasks.Task) {
		t.Prompt, t.Actor, t.Ref, t.Kind = evil, evil, evil, evil
	})
	c := h.Claim(id)
	h.Append(c,
		agent.Event{Kind: agent.Text, Text: evil},
		agent.Event{Kind: agent.ToolUse, Tool: evil, Text: evil, Parent: evil},
		agent.Event{Kind: agent.Kind(evil), Text: evil},
	)
	for range 2 { // while it runs, and when it has ended
		for _, path := range []string{"/", "/tasks/" + id} {
			a := h.get(path)
			h.contains(a, http.StatusOK, "&lt;script&gt;alert(1)", "!<script>", "!\" onload")
			if got := a.Header.Get("Content-Security-Policy"); !strings.HasPrefix(got, "default-src 'self';") ||
				strings.Contains(got, "unsafe") {
				t.Errorf("%s: policy %q", path, got)
			}
		}
		for _, path := range []string{"/api/tasks", "/api/tasks/" + id} {
			h.contains(h.get(path), http.StatusOK, `\u003cscript`, "!<script>")
		}
		if s, err := h.Desk.Status(t.Context(), id); err != nil {
			t.Fatal(err)
		} else if s.State == "running" {
			h.End(c, tasks.Ending{Kind: tasks.Failed, Reason: evil, Result: agent.Result{
				Text: evil, Partial: evil, Model: evil, Duration: 1,
			}})
		}
	}
	h.contains(h.get("/api/tasks/"+id+"/events"), http.StatusOK, `\u003cscript`, "!<script>")
	h.contains(h.get("/"+evil), http.StatusNotFound, "!<script>")
}

// Invisible characters are spelled out everywhere on a page.
func TestNothingIsHidden(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.submit(1, func(t *tasks.Task) {
		t.Prompt, t.Actor, t.Ref = "safe\u202egnp.exe\x1b[31m red", "ann\u2066", "main\x07"
	})
	h.contains(h.get("/"), http.StatusOK, `safe\u202egnp.exe red`, `>ann\u2066<`, "!\u202e", "!\u2066", "!\x1b")
	h.contains(h.get("/tasks/"+id), http.StatusOK, `<h1>safe\u202egnp.exe red</h1>`, `ann\u2066`, `main\x07`, "!\u202e",
		"!\u2066", "!\x1b")
}

// Terminal escape sequences in text remove nothing else from a page: applied to the markup, one could span several tags
// and tasks.
func TestOrdersStayInTheirPlace(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.submit(1, func(t *tasks.Task) { t.Prompt, t.Repo, t.Ref = "first \x1b]", "acme/one", "main\x1b[" })
	h.submit(2, func(t *tasks.Task) { t.Prompt, t.Repo, t.Ref = "second \x07", "acme/two", "main\x07" })
	h.contains(h.get("/"), http.StatusOK, `First</a>`, `Second \x07</a>`, ">acme/one</a>", ">acme/two</a>")
	h.contains(h.get("/tasks/1700000000000001-test-x"), http.StatusOK, `<dd>main\x1b[</dd>`)
}

func TestStaticFiles(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for file, kind := range map[string]string{
		"task.js": "text/javascript", "live.js": "text/javascript", "list.js": "text/javascript",
		"style.css": "text/css", "icon.svg": "image/svg+xml",
	} {
		a := h.get("/static/" + file)
		if a.StatusCode != http.StatusOK || !strings.HasPrefix(a.Header.Get("Content-Type"), kind) {
			t.Errorf("%s: %s %s", file, a.Status, a.Header.Get("Content-Type"))
		}
	}
}
