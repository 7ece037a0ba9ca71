package web

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/web/internal/view"
)

func TestListIsFiltered(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	put := func(n int, repo, actor, prompt string) string {
		return h.submit(n, func(t *tasks.Task) { t.Thread, t.Repo, t.Actor, t.Prompt = t.ID, repo, actor, prompt })
	}
	ann := put(1, "acme/api", "ann", "Mend the build")
	bob := put(2, "acme/api", "bob", "Explain the build")
	sue := put(3, "", "sue", "Nothing to do with it")
	h.End(h.Claim(bob), tasks.Ending{Kind: tasks.TimedOut, Limit: "2h"})
	for query, want := range map[string]string{
		"":                                     sue + bob + ann,
		"repository=acme%2Fapi":                bob + ann,
		"person=test/ann":                      ann,
		"person=other/ann":                     "",
		"source=test":                          sue + bob + ann,
		"source=other":                         "",
		"ending=timed_out":                     bob,
		"ending=superseded":                    "",
		"text=BUILD&state=waiting":             ann,
		"text=build&repository=acme/api":       bob + ann,
		"text=" + sue:                          sue,
		"state=ended&person=ann&ending=failed": "",
	} {
		var l view.Listing
		h.into(h.get("/api/tasks?"+query), http.StatusOK, &l)
		got, page := "", h.get("/?"+query)
		for _, v := range l.Tasks {
			got += v.Task.ID
			h.contains(page, http.StatusOK, `href="/tasks/`+v.Task.ID+`"`)
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
		if want == "" {
			h.contains(page, http.StatusOK, "No tasks here.")
		}
	}
	// The form keeps the filter, and each name links to its tasks.
	h.contains(h.get("/?text=%3Cbuild%22&state=ended&person=bob"), http.StatusOK, `value="&lt;build&#34;"`, `value="bob"`, "<details open>",
		`href="/?person=bob&amp;state=waiting&amp;text=%3Cbuild%22"`, `href="/?state=ended"`)
	h.contains(h.get("/?state=ended&limit=1"), http.StatusOK, "timed out", "This timed out after 2h", "!<details open>",
		`href="/?limit=1&amp;person=test%2Fbob&amp;state=ended"`, `href="/?limit=1&amp;repository=acme%2Fapi&amp;state=ended"`,
		`href="/?before=`+bob+`&amp;limit=1&amp;state=ended">older`)
}

func TestListShowsTheFleet(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.contains(h.get("/"), http.StatusOK, "New tasks will not run, or will fail. No worker is alive. Start one, with the same REDIS_URL.", "No worker is alive.", "<b>0</b> of 0 slots", "!today", "!the oldest")
	for _, w := range []store.Worker{
		{ID: "a-1", Host: "a.test", Version: "v1.2", Pid: 77, Slots: 4, Running: 3, Memory: 5 << 29, Health: json.RawMessage(`{"ok":true,"version":"2.1.9"}`)},
		{ID: "b-1", Host: "b.test", Slots: 2, Draining: true},
		{ID: "c-1", Host: "c.test", Slots: 2, Health: json.RawMessage(`{"ok":false,"problem":"no credential"}`)},
		{ID: "d-1", Host: "d.test", Slots: 2, Health: json.RawMessage(`1`)},
	} {
		if _, err := h.Store.Workers.Beat(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	c := h.Claim(h.submit(1, func(t *tasks.Task) { t.Class = tasks.Review }))
	if _, err := c.Spend(t.Context(), store.Expense{USD: 1.25}); err != nil {
		t.Fatal(err)
	}
	h.contains(h.get("/"), http.StatusOK, "!no worker", "<b>3</b> of 10 slots", "<b>0</b> waiting", "<b>4</b> workers", "<b>$1.25</b> today",
		`<tr><th scope="row">review</th><td>1</td>`, `<tr><th scope="row">interactive</th><td>0</td><td>–</td>`,
		`href="/health#a-1">a.test</a> <span class="level ok">takes tasks`, "2.5 GiB free", "CLI 2.1.9", "v1.2", "pid 77",
		`b.test</a> <span class="level note">shutting down`, `c.test</a> <span class="level error">cannot run tasks`, `d.test</a> <span class="level error">`)
	var f view.Fleet
	h.into(h.get("/api/health"), http.StatusOK, &f)
	if f.Spent != 1.25 || len(f.Queues) != 4 || f.Queues[1].Waiting != 1 || f.Workers[0].Memory != 5<<29 {
		t.Errorf("got %+v", f)
	}
}

// An unchanged page is not sent again.
func TestLivePage(t *testing.T) {
	t.Parallel()
	noon := time.UnixMicro(1700000000000000).Add(time.Hour)
	h := newHarness(t, func(c *Config) { c.now = func() time.Time { return noon } })
	for _, path := range []string{"/", "/health"} {
		first := h.get(path)
		h.contains(first, http.StatusOK, `<script src="/static/live.js"`, "data-live")
		tag := first.Header.Get("ETag")
		if again := h.get(path, "If-None-Match", tag); again.StatusCode != http.StatusNotModified || again.text != "" || tag == "" {
			t.Errorf("%s, requested again with %s: %s, %s", path, tag, again.Status, again.text)
		}
		if _, err := h.Store.Workers.Beat(t.Context(), store.Worker{ID: "w" + path, Host: "w.test"}); err != nil {
			t.Fatal(err)
		}
		h.contains(h.get(path, "If-None-Match", tag), http.StatusOK, "w.test")
	}
}

func TestListPageWithoutRedis(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	_ = h.redis.Close()
	h.contains(h.get("/", "Accept", "text/html"), http.StatusServiceUnavailable, "Redis does not answer")
	h.contains(h.get("/health"), http.StatusOK, "Redis does not answer", "REDIS_URL")
}

// The list works with the in-memory Redis of a standalone worker.
func TestListPageInMemory(t *testing.T) {
	t.Parallel()
	h := newHarnessAt(t, &redis.Options{Addr: miniredis.RunT(t).Addr()})
	h.submit(1)
	h.contains(h.get("/?source=test&text=do"), http.StatusOK, "Do it", "<b>1</b> waiting")
	h.contains(h.get("/health"), http.StatusOK, "Redis is in memory")
}
