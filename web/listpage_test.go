package web

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/web/auth"
	"github.com/errand-fleet/errand/web/console"
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
			h.contains(page, http.StatusOK, "No task matches")
		}
	}
	// The form keeps the filter, and each name links to its tasks.
	h.contains(h.get("/?text=%3Cbuild%22&state=ended&person=bob"), http.StatusOK, `value="&lt;build&#34;"`,
		`value="bob"`, "<details open>",
		`href="/?person=bob&amp;state=waiting&amp;text=%3Cbuild%22"`, `href="/?state=ended"`)
	h.contains(h.get("/?state=ended&limit=1"), http.StatusOK, "Timed out", "Stopped at the time limit of 2h",
		"!<details open>",
		`href="/?limit=1&amp;person=test%2Fbob&amp;state=ended"`,
		`href="/?limit=1&amp;repository=acme%2Fapi&amp;state=ended"`,
		`href="/?before=`+bob+`&amp;limit=1&amp;state=ended">older`)
}

func TestListShowsTheFleet(t *testing.T) {
	t.Parallel()
	h := atMidday(t)
	h.contains(h.get("/"), http.StatusOK,
		"New tasks will not run, or will fail. No worker is alive. Start one, with the same REDIS_URL.",
		"!slots taken",
		"<b>0</b> workers", "!</b> today")
	for _, w := range []store.Worker{
		{
			ID: "a-1", Host: "a.test", Slots: 4, Running: 3, Memory: 5 << 29,
			Health: json.RawMessage(`{"ok":true,"version":"2.1.9"}`),
		},
		{ID: "b-1", Host: "b.test", Slots: 2, Draining: true},
	} {
		if _, err := h.Store.Workers.Beat(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	c := h.Claim(h.submit(1, func(t *tasks.Task) { t.Class = tasks.Review }))
	if _, err := c.Spend(t.Context(), store.Expense{USD: 1.25}); err != nil {
		t.Fatal(err)
	}
	// What runs is counted once, by the state of the tasks, wherever it is shown.
	h.contains(h.get("/"), http.StatusOK, "<b>1</b> of 6 slots",
		`Running <span class="count" id="count-running">1</span>`, "<b>2</b> workers", "<b>$1.25</b> today")
	var f view.Fleet
	h.into(h.get("/api/health"), http.StatusOK, &f)
	if f.Spent != 1.25 || len(f.Queues) != 4 || f.Queues[1].Waiting != 1 || f.Workers[0].Memory != 5<<29 {
		t.Errorf("got %+v", f)
	}
}

// The list is in sections, each with the number of its tasks and a bounded number of rows.
func TestListInSections(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	const heading = `<h2>%s <span class="count" id="count-%s">%s</span>%s</h2>`
	counted := func(title, name, n, rest string) string { return fmt.Sprintf(heading, title, name, n, rest) }
	at := func(n int) string {
		return h.submit(n, func(t *tasks.Task) { t.Thread, t.Repo = t.ID, "acme/app" })
	}
	done := at(1)
	h.End(h.Claim(done), tasks.Ending{Kind: tasks.Answered})
	h.contains(h.get("/"), http.StatusOK, "Nothing is running or waiting.",
		`<h2>Recent <a href="/?state=ended">Show all</a></h2>`, "!Waiting <", "!Needs you")
	asking, running := at(2), at(3)
	c := h.Claim(asking)
	h.Claim(running)
	if _, err := c.Ask(t.Context(), "k", h.JSON(tasks.Question{
		Key: "k", Text: "Which one?", Until: time.Now().Add(time.Hour),
	})); err != nil {
		t.Fatal(err)
	}
	for n := range 25 {
		at(10 + n)
	}
	for _, path := range []string{"/", "/?repository=acme%2Fapp"} { // by the indexes, and by the heads of the records
		page, more, waiting := h.get(path), "", "25"
		if path != "/" {
			more, waiting = "repository=acme%2Fapp&amp;", "20&#43;"
		}
		h.contains(page, http.StatusOK, counted("Needs you", "asking", "1", ""), "Which one?",
			counted("Running", "running", "2", ` <span class="of">1 of them above</span>`),
			counted("Waiting", "waiting", waiting, ` <a href="/?`+more+`state=waiting">Show all</a>`), "<h2>Recent <a")
		if rows := strings.Count(page.text, `<li id="task-`); rows != 1+1+20+1 {
			t.Errorf("%s: %d rows", path, rows)
		}
		places := []int{
			strings.Index(page.text, "task-"+asking), strings.Index(page.text, "task-"+running),
			strings.Index(page.text, "task-"+done),
		}
		if !slices.IsSorted(places) || places[0] < 0 {
			t.Errorf("%s: in the wrong order: %v", path, places)
		}
	}
	h.contains(h.get("/?repository=acme/none"), http.StatusOK, "No task matches: <b>repository acme/none</b>.",
		`href="/">Show all tasks</a>`, "!<h2>")
	if _, err := h.Desk.Answer(t.Context(), asking, "k", "ann", "that"); err != nil {
		t.Fatal(err)
	}
	h.contains(h.get("/"), http.StatusOK, counted("Running", "running", "2", ""), "!Needs you")
}

// Only those who may answer a question are needed.
func TestListAsksThoseWhoMayAnswer(t *testing.T) {
	t.Parallel()
	h := newHarness(t, withProxy, func(c *Config) {
		c.Access = &auth.Access{Grants: []auth.Grant{
			{Role: policy.User, People: []string{"ann"}}, {Role: policy.Viewer, People: []string{"eve"}},
		}}
	})
	c := h.Claim(h.submit(1))
	if _, err := c.Ask(t.Context(), "k", h.JSON(tasks.Question{Key: "k", Text: "Which one?"})); err != nil {
		t.Fatal(err)
	}
	for who, want := range map[string][2]string{"ann": {"Needs you", "Asks<"}, "eve": {"Asks<", "Needs you"}} {
		page := h.through("192.0.2.1:7", "198.51.100.1:8080", http.MethodGet, "/", "X-Forwarded-User", who).Body.String()
		if !strings.Contains(page, want[0]) || strings.Contains(page, want[1]) ||
			!strings.Contains(page, `href="/?person=chat%2F`+who+`">Mine</a>`) {
			t.Errorf("%s sees %s", who, page)
		}
	}
}

// The views that everyone has are filters: their own tasks, what failed today, and reviews.
func TestListViews(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	put := func(at time.Time, change func(*tasks.Task)) string {
		task := tasks.Task{
			ID: tasks.NewID(at, "chat", fmt.Sprint(at.UnixMicro())), Source: "chat", Kind: "chat",
			Class: tasks.Interactive, Profile: agent.Read, Actor: "ann", Prompt: "Do it",
		}
		change(&task)
		task.Thread = "chat/" + fmt.Sprint(at.UnixMicro())
		if _, err := h.Desk.Submit(t.Context(), task); err != nil {
			t.Fatal(err)
		}
		return task.ID
	}
	now := time.Now()
	mine := put(now, func(t *tasks.Task) { t.Actor = people.Console })
	review := put(now.Add(time.Second), func(t *tasks.Task) { t.Class = tasks.Review })
	old := put(now.Add(-25*time.Hour), func(*tasks.Task) {})
	fresh := put(now.Add(time.Hour), func(*tasks.Task) {}) // of today, even if that is over now
	for _, id := range []string{old, fresh} {
		h.End(h.Claim(id), tasks.Ending{Kind: tasks.Failed})
	}
	for label, id := range map[string]string{"Mine": mine, "Failed today": fresh, "Reviews": review} {
		_, href, _ := strings.Cut(h.get("/").text, `id="views"`)
		href, _, _ = strings.Cut(href, `">`+label+`</a>`)
		href = html.UnescapeString(href[strings.LastIndex(href, `href="`)+len(`href="`):])
		page := h.get(href)
		h.contains(page, http.StatusOK, `aria-current="page">`+label+`</a>`, `id="task-`+id+`"`)
		if strings.Count(page.text, `<li id="task-`) != 1 {
			t.Errorf("%s shows more: %s", label, page.text)
		}
	}
	h.contains(h.get("/?days=0"), http.StatusBadRequest)
	h.contains(h.get("/?class=other"), http.StatusBadRequest)
	h.contains(h.get("/?days=3&limit=7&class=review"), http.StatusOK, `<option value="3" selected>3 days</option>`,
		`<option selected>review</option>`,
		`<input type="hidden" name="limit" value="7">`,
		`href="/?class=review&amp;days=3&amp;limit=7&amp;state=waiting"`)
}

// An empty list says how to start a task with what is configured.
func TestEmptyList(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.contains(h.get("/"), http.StatusOK, "No tasks yet", "enqueue chat", "!@errand", "!/review", "!the <a")
	h = newHarness(t, func(c *Config) {
		c.Inbound = []Inbound{inbound("slack", time.Time{}, nil), inbound("github", time.Time{}, nil)}
		c.Chat = console.Chat{Source: poster{}}
	})
	h.contains(h.get("/"), http.StatusOK, "No tasks yet", "@errand", "<code>/review</code>", `<a href="/chat">chat</a>`,
		"enqueue chat")
	h.contains(h.get("/?state=running"), http.StatusOK, "No task matches: <b>running</b>.", "!No tasks yet",
		"!state=absorbed")
}

// An unchanged page is not sent again.
func TestLivePage(t *testing.T) {
	t.Parallel()
	noon := time.UnixMicro(1700000000000000).Add(time.Hour)
	h := newHarness(t, func(c *Config) { c.now = func() time.Time { return noon } })
	for path, changed := range map[string]string{"/": " slots taken</span>", "/fleet": "w.test"} {
		first := h.get(path)
		h.contains(first, http.StatusOK, `<script src="/static/live.js"`, "data-live")
		tag := first.Header.Get("ETag")
		if again := h.get(path, "If-None-Match", tag); again.StatusCode != http.StatusNotModified ||
			again.text != "" || tag == "" {
			t.Errorf("%s, requested again with %s: %s, %s", path, tag, again.Status, again.text)
		}
		if _, err := h.Store.Workers.Beat(t.Context(),
			store.Worker{ID: "w" + path, Host: "w.test", Slots: 1}); err != nil {
			t.Fatal(err)
		}
		h.contains(h.get(path, "If-None-Match", tag), http.StatusOK, changed)
	}
}

func TestListPageWithoutRedis(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	_ = h.redis.Close()
	h.contains(h.get("/", "Accept", "text/html"), http.StatusServiceUnavailable, "Redis does not answer")
	h.contains(h.get("/fleet"), http.StatusOK, "Redis does not answer", "REDIS_URL")
}

// The list works with the in-memory Redis of a standalone worker.
func TestListPageInMemory(t *testing.T) {
	t.Parallel()
	h := newHarnessAt(t, &redis.Options{Addr: miniredis.RunT(t).Addr()})
	h.submit(1)
	h.contains(h.get("/?source=test&text=do"), http.StatusOK, "Do it")
	h.contains(h.get("/"), http.StatusOK, `Waiting <span class="count" id="count-waiting">1</span>`)
	h.contains(h.get("/fleet"), http.StatusOK, "Redis is in memory")
}
