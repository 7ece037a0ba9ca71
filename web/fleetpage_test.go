package web

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/capacity"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/queue"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/web/internal/view"
)

func TestHealthPage(t *testing.T) {
	t.Parallel()
	asked := 0
	h := newHarness(t, func(c *Config) {
		c.Inbound = []Inbound{inbound("slack", time.Time{}, nil)}
		c.Examine = func(context.Context) []store.Finding {
			asked++
			return []store.Finding{
				{What: "slack accepts the token"}, {
					Severity: store.Fatal, What: "a scope is missing", Remedy: "Add <it>.",
				},
			}
		}
	})
	h.contains(h.get("/fleet"), http.StatusOK, "no worker is alive", "Start a worker", "Redis runs without appendonly",
		"Set appendonly yes", "slack: this front door has received no event yet")
	beat := func(id, health string) {
		t.Helper()
		if _, err := h.Store.Workers.Beat(t.Context(),
			store.Worker{ID: id, Host: id + ".test", Health: json.RawMessage(health)}); err != nil {
			t.Fatal(err)
		}
	}
	beat("a", `{"ok":true,"version":"2.1.9","notices":["the <gateway> is off"]}`)
	h.contains(h.get("/fleet"), http.StatusOK, `class="banner warning"`, `id="a"`, "the CLI is version 2.1.9",
		"the &lt;gateway&gt; is off")
	beat("b", `{"ok":false,"problem":"claude has no credential","remedy":"set ANTHROPIC_API_KEY"}`)
	h.contains(h.get("/fleet"), http.StatusOK, "Some checks failed", "claude has no credential",
		"set ANTHROPIC_API_KEY", "!slack accepts the token")
	if asked > 0 {
		t.Error("the services were checked without a request")
	}
	a := h.get("/fleet?services=1")
	// which would check them every 3 s
	h.contains(a, http.StatusOK, "slack accepts the token", "Add &lt;it&gt;.", "!live.js")
	if strings.Index(a.text, "a scope is missing") > strings.Index(a.text, "slack accepts the token") {
		t.Error("the failed check comes last")
	}
}

// The page shows the usage limits and holds of credentials, and the API has the same. Only those who see the
// whole fleet get them.
func TestCredentialsOnTheFleetPage(t *testing.T) {
	t.Parallel()
	h := atMidday(t)
	now := h.config.now()
	states := map[string]agent.CredentialState{
		"team-a": {Seen: now, Windows: []agent.CredentialWindow{{
			Name: "5h", Used: 0.43, ResetsAt: now.Add(time.Hour),
		}, {Name: "7d", Used: 0.9, ResetsAt: now.Add(-time.Hour)}}},
		"team-b": {HeldAt: now, Status: 429, Until: now.Add(time.Hour)},
		"team-d": {Seen: now},
	}
	if _, err := capacity.ShareCredentials(t.Context(), h.Store, states); err != nil {
		t.Fatal(err)
	}
	for n, e := range []store.Expense{{USD: 1.5, Credential: "team-a"}, {USD: 0.5, Credential: "team-d"}} {
		id := h.submit(1+n, func(t *tasks.Task) { t.Thread += e.Credential })
		if _, err := h.Claim(id).Spend(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	h.contains(h.get("/fleet"), http.StatusOK, "team-a", `value="0.43" aria-label="5h limit of team-a"`,
		"43%, resets <time ", `title="`+now.Add(time.Hour).Format("2006-01-02 15:04:05 UTC"),
		`value="0" aria-label="7d limit`, "$1.50",
		"held: the model answered 429 until <time ", "$0.50")
	h.contains(h.get("/api/health"), http.StatusServiceUnavailable, `"name": "team-a"`, `"spent_today_usd": 1.5`,
		`"used": 0.43`, `"status": 429`)
	h.contains(h.get("/costs?by=credential&days=1"), http.StatusOK, "team-a", "$1.50", "team-d")
	h.contains(h.get("/api/costs?by=credential&credential=team-d"), http.StatusOK, `"credential": "team-d"`,
		`"cost_usd": 0.5`, "!team-a")
	if all, err := desk.FleetOf(h.Desk).Credentials(people.WithVisitor(t.Context(), people.Visitor{})); len(all) > 0 ||
		err != nil {
		t.Errorf("a visitor without a role gets %v, %v", all, err)
	}
}

// A note that the front door and a worker both report is on the page once. A fault is a fault of each of them.
func TestANoteIsShownOnce(t *testing.T) {
	t.Parallel()
	note := store.Finding{Severity: store.Note, What: "errand.yaml has one repository"}
	fault := store.Finding{Severity: store.Fatal, What: "the disk is full"}
	h := newHarness(t, func(c *Config) { c.Notices = []store.Finding{note, fault} })
	other := store.Finding{Severity: store.Note, What: "the disk is slow"}
	if _, err := h.Store.Workers.Beat(t.Context(), store.Worker{
		ID: "w1", Host: "mill.test", Health: json.RawMessage(`{"ok":true}`),
		Notices: []store.Finding{note, fault, other},
	}); err != nil {
		t.Fatal(err)
	}
	page := h.get("/fleet")
	h.contains(page, http.StatusOK, other.What)
	for what, want := range map[string]int{note.What: 1, fault.What: 2} {
		if n := strings.Count(page.text, what); n != want {
			t.Errorf("%q is shown %d times, want %d", what, n, want)
		}
	}
}

// Operators pause classes and cordon workers by buttons, viewers see who did it, and the log has both.
func TestPauseAndCordonByButtons(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	beat := func(id, host string) {
		t.Helper()
		if _, err := h.Store.Workers.Beat(t.Context(), store.Worker{
			ID: id, Host: host, Slots: 4, Running: 1, Credential: "k", Health: json.RawMessage(`{"ok":true}`),
		}); err != nil {
			t.Fatal(err)
		}
	}
	beat("w1", "mill-1.test")
	id := h.submit(1)
	asked := time.Now().Add(-2 * time.Hour).UnixMicro()
	if err := h.redis.HSet(t.Context(), "errand:task:"+id, "created", asked).Err(); err != nil {
		t.Fatal(err)
	}
	page := func(hs ...string) answer { t.Helper(); return h.get("/fleet", append(hs, "Accept", "text/html")...) }
	viewer := []string{"Authorization", "Bearer " + h.apiToken("see", "viewer")}
	h.contains(page(), http.StatusOK, `action="/fleet/classes/interactive/pause"`,
		`action="/fleet/workers/mill-1.test/cordon"`, `href="/queues/"`,
		"1 of 4 slots", `interactive</th><td><a href="/?state=waiting&amp;class=interactive">1</a></td><td>2h</td>`)
	h.contains(page(viewer...), http.StatusOK, "mill-1.test", "!<form method=\"post\" action=\"/fleet",
		`!href="/queues/"`)

	ops := []string{"Authorization", "Bearer " + h.apiToken("ops", "operator")}
	for _, path := range []string{"/fleet/classes/interactive/pause", "/fleet/workers/mill-1.test/cordon"} {
		h.redirects(h.do("POST", path, "", append(ops, "Accept", "text/html")...), "/fleet")
	}
	paused, err := h.Store.Paused.All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// no worker takes tasks
	h.contains(page(viewer...), http.StatusOK, "token:ops paused interactive tasks",
		`>paused</span> <span class="wide"><time`, "Resume the class", `class="banner error"`,
		"Its tasks have waited since "+view.Time(paused["interactive"].Since)+". ",
		"all workers are cordoned", ">cordoned<", "cordoned <time", "it takes no tasks: token:ops cordoned it")
	h.contains(page(), http.StatusOK, `action="/fleet/classes/interactive/resume"`,
		`action="/fleet/workers/mill-1.test/uncordon"`)
	h.contains(h.get("/tasks/"+id), http.StatusOK, "token:ops paused interactive tasks")
	h.contains(h.get("/api/audit"), http.StatusOK, "POST /fleet/classes/interactive/pause",
		"POST /fleet/workers/mill-1.test/cordon", `"who": "token:ops"`)

	beat("w2", "mill-2.test")
	h.contains(page(), http.StatusOK, `class="banner warning"`, "!all workers are cordoned")
	for _, path := range []string{"/fleet/classes/interactive/resume", "/fleet/workers/mill-1.test/uncordon"} {
		h.redirects(h.do("POST", path, "", append(ops, "Accept", "text/html")...), "/fleet")
	}
	h.contains(page(), http.StatusOK, "!paused interactive", "!cordoned it")
	h.problem(h.do("POST", "/api/fleet/workers/gone/cordon", "", ops...), http.StatusNotFound)
	h.problem(h.do("POST", "/api/fleet/classes/fast/pause", "", ops...), http.StatusNotFound)
	limited := []string{"Authorization", "Bearer " + h.apiToken("team", "operator", "acme/*")}
	h.problem(h.do("POST", "/api/fleet/classes/review/pause", "", limited...), http.StatusForbidden)
	h.contains(page(limited...), http.StatusOK, "!/pause", "!/cordon")
}

// The page shows what ended by hour, and what is spent of the day's budget.
func TestFleetAtWork(t *testing.T) {
	t.Parallel()
	h := atMidday(t, func(c *Config) {
		client := c.Redis.MakeRedisClient().(*redis.Client)
		t.Cleanup(func() { _ = client.Close() })
		c.Desk = desk.New(c.Store, queue.New(c.Store, client, time.Hour), rights.Policy{
			Budgets: rights.Budgets{Day: 50},
		}, nil)
	})
	for i, kind := range []tasks.EndingKind{tasks.Answered, tasks.Answered, tasks.Failed, tasks.Cancelled} {
		h.End(h.Claim(h.inRepo(i+1, "acme/ended")), tasks.Ending{Kind: kind, At: time.Now()})
	}
	a := h.get("/fleet")
	h.contains(a, http.StatusOK, "<b>4</b> ended in 24 h",
		"<b>1</b> failed",
		"</th><td>2</td><td>1</td><td>1</td><td class=\"wide\"><meter max=\"1\" value=\"1.000\"", "≤ ",
		"<b>$0.00</b> of $50.00 spent today")
	limited := []string{"Authorization", "Bearer " + h.apiToken("team", "operator", "other/*")}
	h.contains(h.get("/fleet", append(limited, "Accept", "text/html")...), http.StatusOK, "!spent today")
}

// The page of the fleet shows pools if there is more than the default one, and the page of a task names its pool.
func TestPoolsAreShown(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	html := []string{"Accept", "text/html"}
	beat := func(id, pool string) {
		t.Helper()
		w := store.Worker{
			ID: id, Host: id + ".test", Pool: pool, Slots: 4, Running: 1, Health: json.RawMessage(`{"ok":true}`),
		}
		if _, err := h.Store.Workers.Beat(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	beat("w1", "")
	id := h.submit(1)
	h.contains(h.get("/fleet", html...), http.StatusOK, "!<h2>Pools</h2>", "!pool ")
	if err := h.redis.HSet(t.Context(), "errand:task:"+id, "pool", "gpu").Err(); err != nil {
		t.Fatal(err)
	}
	h.contains(h.get("/fleet", html...), http.StatusOK, "<h2>Pools</h2>", "no workers",
		"no worker of pool gpu is running",
		`<a href="/?state=waiting&amp;pool=gpu">1</a>`)
	h.contains(h.get("/tasks/"+id, html...), http.StatusOK, "<dt>pool</dt><dd>gpu</dd>",
		"no worker of pool gpu is running", "/queues/queues/gpu.interactive/tasks/")
	h.contains(h.get("/?pool=gpu", html...), http.StatusOK, id)
	h.contains(h.get("/?pool=default", html...), http.StatusOK, "!"+id)
	beat("w2", "gpu")
	h.contains(h.get("/fleet", html...), http.StatusOK, "<span>pool gpu</span>", "!no workers",
		"!no worker of pool gpu")
}

// Operators of a repository have its environments rebuilt.
func TestEnvironmentsAreRebuilt(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ops := []string{"Authorization", "Bearer " + h.apiToken("ops", "operator", "acme/api")}
	h.contains(h.do("POST", "/api/fleet/environments/acme%2Fapi/rebuild", "", ops...), http.StatusOK, `"by": "token:ops"`)
	h.contains(h.get("/api/audit"), http.StatusOK, "POST /api/fleet/environments/acme/api/rebuild", `"who": "token:ops"`)
	h.problem(h.do("POST", "/api/fleet/environments/acme%2Fweb/rebuild", "", ops...), http.StatusForbidden)
	h.problem(h.do("POST", "/api/fleet/environments/acme/rebuild", ""), http.StatusNotFound)
	h.problem(h.do("POST", "/api/fleet/environments/acme%2Fapi/rebuild", "", "Authorization",
		"Bearer "+h.apiToken("look", "viewer")), http.StatusForbidden)
}
