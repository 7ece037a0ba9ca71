package web

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/policy"
)

// The head of the page says who asked, for what and where, by name and with links.
func TestHeadOfATask(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(c *Config) {
		c.Links = func(tasks.Task) tasks.Links {
			return tasks.Links{
				Thread: "https://acme.slack.com/archives/C0/p1", Repository: "https://github.com/acme/app",
			}
		}
	})
	id := h.submit(1, func(t *tasks.Task) {
		t.Source, t.Actor, t.Name, t.Repo = "slack", "U0ANN", "Ann Lee", "acme/app"
		t.Options.Limit, t.Options.MaxUSD = 2*time.Hour, 5
	})
	c := h.Claim(id)
	h.Append(c, agent.Event{Kind: agent.ToolUse, ToolID: "1", Text: "Running go test"},
		agent.Event{Kind: agent.Used, CostUSD: 0.21})
	h.contains(h.get("/tasks/"+id), http.StatusOK,
		`class="state running">Working</span>`, `id="doing">Running go test<`, "</span> of 2h",
		`id="cost">$0.21</span> of $5.00`,
		`aria-hidden="true">AL</span>Ann Lee<`, `href="https://acme.slack.com/archives/C0/p1">Slack thread<`,
		`href="https://github.com/acme/app">acme/app<`,
		"/cancel", "!/retry", "!Open PR", `on worker-1`, "<dt>account</dt><dd>U0ANN</dd>")
	if got := strings.Count(h.get("/tasks/"+id).text, "U0ANN"); got != 1 {
		t.Errorf("the account is named %d times, want once, among the identifiers", got)
	}
	h.contains(h.get("/"), http.StatusOK, "Ann Lee", "person=slack%2FU0ANN")
}

// While a question is open, everything says so: the state, the title of the tab, and the list.
func TestTaskThatAsks(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.submit(1)
	c := h.Claim(id)
	until := time.Now().Add(time.Hour).UTC()
	if _, err := c.Ask(t.Context(), "k", h.JSON(tasks.Question{
		Key: "k", Text: "Which *colour*?", Options: []string{"red"}, Until: until,
	})); err != nil {
		t.Fatal(err)
	}
	page := h.get("/tasks/" + id)
	h.contains(page, http.StatusOK, "<title>Needs you: Do it", `class="state asking">Needs you</span>`,
		`href="#question">Answer</a>`,
		"Which <em>colour</em>?", `value="red">red</button>`, "waits for an answer until ", until.Format("15:04 UTC"))
	if strings.Index(page.text, "Which <em>colour</em>?") > strings.Index(page.text, `id="events"`) {
		t.Error("the question comes after the steps")
	}
	h.contains(h.get("/"), http.StatusOK, `class="state asking">Needs you</span>`, `class="note">Which *colour*?`)
	h.contains(h.get("/api/tasks"), http.StatusOK, `"text": "Which *colour*?"`)
}

// A task that waits says for what, with a link, and for about how long if enough tasks of its class have ended.
func TestTaskThatWaits(t *testing.T) {
	t.Parallel()
	now := time.Now()
	h := newHarness(t, func(c *Config) { c.now = func() time.Time { return now } })
	first, second := h.submit(1), h.submit(2, func(t *tasks.Task) { t.Class = tasks.Review })
	h.Claim(first)
	h.contains(h.get("/tasks/"+second), http.StatusOK, `class="state waiting">Waiting</span>`,
		">Ahead of this task", `<li><a href="/tasks/`+first+`">Do it</a>`, `class="state running">Working</span>`,
		"!starts in")
	for n := range 5 {
		h.contains(h.get("/tasks/"+second), http.StatusOK, "!starts in")
		id := h.submit(3+n, func(t *tasks.Task) { t.Class, t.Thread = tasks.Review, fmt.Sprint("test/", n) })
		c := h.Claim(id)
		h.End(c, tasks.Ending{Kind: tasks.Answered, Result: agent.Result{Text: "ok"}})
		started := h.Status(id).Ended.Add(-10 * time.Minute)
		if err := h.redis.HSet(t.Context(), "errand:task:"+id, "started", started.UnixMicro()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	h.contains(h.get("/tasks/"+second), http.StatusOK, "starts in about 10 min")
	aged := func(age time.Duration) answer {
		started := now.Add(-age).UnixMicro()
		if err := h.redis.HSet(t.Context(), "errand:task:"+first, "started", started).Err(); err != nil {
			t.Fatal(err)
		}
		return h.get("/tasks/" + second)
	}
	h.contains(aged(6*time.Minute), http.StatusOK, "starts in about 4 min")
	h.contains(aged(11*time.Minute), http.StatusOK, ">Ahead of this task", "!starts in") // none lasted so long
}

// A task that waits for a full repository or a full person shows the runs that take up the limit.
func TestTaskThatWaitsForALimit(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		limit store.Cap
		want  []string
	}{
		"repository": {
			store.Cap{Scope: "repo:", Max: 1}, []string{
				"1 of 1 runs busy in acme/app", `href="/?repository=acme%2Fapp&amp;state=running">Show all</a>`,
			},
		},
		"person": {
			store.Cap{Scope: "user:", Max: 1}, []string{
				"1 of 1 runs busy", `href="/?person=test%2Fann&amp;state=running">Show all</a>`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			if _, err := h.Store.Workers.Beat(t.Context(), store.Worker{ID: "worker", Slots: 4}); err != nil {
				t.Fatal(err)
			}
			of := func(n int, prompt string) string {
				return h.submit(n, func(t *tasks.Task) {
					t.Repo, t.Prompt, t.Thread = "acme/app", prompt, "test/"+prompt
				})
			}
			first, second := of(1, "first"), of(2, "second")
			if _, err := h.Store.Claim(t.Context(), first, 0, "worker", test.limit); err != nil {
				t.Fatal(err)
			}
			if _, err := h.Store.Claim(t.Context(), second, 0, "worker", test.limit); err == nil {
				t.Fatal("the limit does not hold")
			}
			h.contains(h.get("/tasks/"+second), http.StatusOK,
				append(test.want, `class="state waiting">Waiting</span>`, ">Ahead of this task",
					`<li><a href="/tasks/`+first+`">First</a>`, "1st in line")...)
		})
	}
}

// A run that waits for an answer leaves its place to others, so they do not wait for it.
func TestRunThatAsksIsNotAhead(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	if _, err := h.Store.Workers.Beat(t.Context(), store.Worker{ID: "worker", Slots: 4}); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for n, prompt := range []string{"asks", "asks", "asks", "asks", "asks", "runs", "waits"} {
		ids = append(ids, h.submit(9-n, func(t *tasks.Task) { // those that ask are the newest
			t.Repo, t.Prompt, t.Thread = "acme/app", prompt, fmt.Sprint("test/", n)
		}))
		c, err := h.Store.Claim(t.Context(), ids[n], 0, "worker", store.Cap{Scope: "repo:", Max: 1})
		if (err != nil) != (prompt == "waits") {
			t.Fatalf("%s: %v", prompt, err)
		}
		if prompt == "asks" {
			if _, err := c.Ask(t.Context(), "k", h.JSON(tasks.Question{
				Key: "k", Text: "Why?", Until: time.Now().Add(time.Hour),
			})); err != nil {
				t.Fatal(err)
			}
			if err := c.Lend(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	h.contains(h.get("/tasks/"+ids[6]), http.StatusOK, ">Ahead of this task",
		`<a href="/tasks/`+ids[5]+`">Runs</a>`, "!"+ids[0])
}

// The page has the machines of a task's runs: those that are alive with their load, the others with their ID.
func TestMachines(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.submit(1)
	for _, w := range []store.Worker{
		{ID: "mill-1", Host: "mill-1.acme.example", Version: "v1.4.0", Slots: 4, Running: 2},
		{ID: "mill-2", Host: "mill-2", Slots: 4, Draining: true},
	} {
		if _, err := h.Store.Workers.Beat(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	page := h.get("/tasks/" + id)
	h.contains(page, http.StatusOK, "!>Machine")
	for _, w := range []string{"gone-1", "mill-1", "mill-2", "mill-1"} {
		rec, err := h.Store.Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		c, err := h.Store.Claim(t.Context(), id, rec.Delivery, w)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now().Add(-time.Minute)
		h.redis.HSet(t.Context(), "errand:task:"+id, "runs",
			lastRunBegan(h.redis.HGet(t.Context(), "errand:task:"+id, "runs").Val(), began))
		if err := c.Return(t.Context(), store.Wait{Why: "its worker is shutting down"}); err != nil {
			t.Fatal(err)
		}
	}
	h.contains(h.get("/tasks/"+id), http.StatusOK, "<h2>Machines</h2>",
		`<li>gone-1
<p class="meta"><span>no longer running</span></p></li>`, `<li>mill-1
<p class="meta"><span>mill-1.acme.example</span> <span>errand v1.4.0</span> <span>2 of 4 runs</span></p></li>`, `<li>mill-2
<p class="meta"><span>shutting down</span></p></li>`)
}

// lastRunBegan returns the runs of a record, the last of which began at that time.
func lastRunBegan(runs string, at time.Time) string {
	begin := strings.LastIndexByte(runs, '\n') + 1
	_, rest, _ := strings.Cut(runs[begin:], "\t")
	return runs[:begin] + strconv.FormatInt(at.UnixMicro(), 10) + "\t" + rest
}

// The page of a task that has ended says what came of it and what to do next. Stopped is not failed.
func TestTaskThatEnded(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	published := &tasks.Published{Work: tasks.Work{Repo: "acme/app"}}
	published.PullRequest.Number, published.PullRequest.URL = 42, "https://github.com/acme/app/pull/42"
	published.PullRequest.Draft = true
	ready, further := *published, *published
	ready.PullRequest.Draft, further.Repo = false, "acme/web"
	further.PullRequest.Number, further.PullRequest.URL = 7, "https://github.com/acme/web/pull/7"
	for n, test := range []struct {
		ending tasks.Ending
		want   []string
	}{
		{tasks.Ending{
			Kind: tasks.Answered, Result: agent.Result{Text: "It is **blue**.", Duration: 62 * time.Second},
			Published: published,
		}, []string{
			`class="state answered">Done</span>`, "PR #42", "<strong>blue</strong>",
			`class="button first" href="https://github.com/acme/app/pull/42">Open PR</a>`,
			"review draft pull request #42", "!is-failed",
		}},
		{tasks.Ending{
			Kind: tasks.Answered, Result: agent.Result{Text: "ok"}, Published: &ready,
			Also: []*tasks.Published{&further},
		}, []string{
			`class="button first" href="https://github.com/acme/app/pull/42">Open acme/app#42</a>`,
			`class="button first" href="https://github.com/acme/web/pull/7">Open acme/web#7</a>`,
			"<span>PR #42, PR acme/web#7</span>", "review the 2 pull requests. To ask for changes, comment on them.",
		}},
		{tasks.Ending{Kind: tasks.Cancelled, By: "Bo"}, []string{
			`class="state cancelled">Stopped</span>`, `class="sentence is-stopped">Stopped by Bo.`,
			"<span>stopped by Bo</span>", "!is-failed", "!Open PR", ">Retry<",
		}},
		{tasks.Ending{Kind: tasks.Failed, Reason: "The credit is used up."}, []string{
			`class="state failed">Failed</span>`, `class="sentence is-failed">The credit is used up.`,
			"Next: when the cause is gone, retry.", "!is-stopped",
		}},
		{tasks.Ending{Kind: tasks.TimedOut, Limit: "2h"}, []string{
			`class="state timed_out">Timed out</span>`, `class="sentence is-limit">`,
		}},
	} {
		id := h.submit(n, func(t *tasks.Task) { t.Thread = fmt.Sprint("test/", n) })
		h.End(h.Claim(id), test.ending)
		h.contains(h.get("/tasks/"+id), http.StatusOK, append(test.want, "!/cancel", "!data-events")...)
		if test.ending.Kind == tasks.Failed { // a viewer cannot retry
			h.contains(h.get("/tasks/"+id, "Authorization", "Bearer "+h.apiToken("viewer", "viewer")), http.StatusOK,
				"credit is used up", "!retry")
		}
	}
	h.contains(h.get("/"), http.StatusOK, `">PR #42</a></p>`, `<p class="note">PR #42, PR acme/web#7</p>`,
		`<p class="note">Stopped by Bo. Ask again to continue.</p>`)
	id := h.submit(9, func(t *tasks.Task) { t.Thread, t.Source = "chat/abc", "chat" })
	h.End(h.Claim(id), tasks.Ending{Kind: tasks.Answered, Result: agent.Result{Text: "ok"}})
	h.contains(h.get("/tasks/"+id), http.StatusOK, `href="/chat/abc#latest">Continue in chat</a>`)
}

// Each run of a task is on its page, with its worker and the reason of its end. One that was handed back at once is
// not.
func TestAttempts(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.submit(1)
	for n, w := range []string{"mill-1", "mill-2"} {
		c, err := h.Store.Claim(t.Context(), id, n, w)
		if err == nil {
			err = c.Return(t.Context(), store.Wait{Why: "the worker is shutting down", Counts: true})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s := h.Status(id)
	if len(s.Runs) != 2 || s.Runs[0].Worker != "mill-1" || s.Runs[0].Why != "the worker is shutting down" ||
		s.Runs[0].Ended.Before(s.Runs[0].Started) {
		t.Fatalf("runs %+v", s.Runs)
	}
	long := fmt.Sprintf("%d\tmill-1\t%d\tthe worker is shutting down\n", s.Runs[0].Started.Add(-time.Hour).UnixMicro(),
		s.Runs[0].Ended.UnixMicro())
	field := h.redis.HGet(t.Context(), "errand:task:"+id, "runs").Val()
	_, brief, _ := strings.Cut(field, "\n")
	if err := h.redis.HSet(t.Context(), "errand:task:"+id, "runs", long+brief).Err(); err != nil {
		t.Fatal(err)
	}
	claim := h.Claim(id)
	page := h.get("/tasks/" + id)
	h.contains(page, http.StatusOK, ">Attempts</h2>", "on mill-1", ", 1h\n", "<span>the worker is shutting down</span>",
		"!mill-2", "on worker-1")
	if strings.Index(page.text, "on worker-1") > strings.Index(page.text, "on mill-1") {
		t.Error("the latest run is not first")
	}
	used := agent.Resources{CPU: 90 * time.Second, Peak: 3 << 29, Disk: 300 << 20}
	h.End(claim, tasks.Ending{Kind: tasks.Answered, Result: agent.Result{
		Text: "ok", Duration: time.Minute, Resources: used,
	}})
	h.contains(h.get("/tasks/"+id), http.StatusOK,
		"Last attempt: 1m30s of CPU time, 1.5 GiB of memory, 300 MiB added to the disk<",
		`ran <span id="elapsed">1m</span>`, ", 1m\n")
}

// A step has its duration and its own link. What the run absorbed is linked, with its author.
func TestSteps(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id, other := h.submit(1), h.submit(2)
	c := h.Claim(id)
	at := time.Date(2026, 11, 2, 10, 0, 0, 0, time.UTC)
	h.Append(c,
		agent.Event{Kind: agent.ToolUse, ToolID: "a", Text: "Running make", Time: at},
		agent.Event{Kind: agent.ToolResult, ToolID: "a", Time: at.Add(83 * time.Second)},
		agent.Event{Kind: agent.ToolUse, ToolID: "b", Text: "Running true", Time: at},
		agent.Event{Kind: agent.ToolResult, ToolID: "b", Time: at.Add(400 * time.Millisecond), Error: true},
		agent.Event{Kind: tasks.Absorbed, Tool: "Dana", ToolID: other, Text: "on Mondays"},
	)
	page := h.get("/tasks/" + id)
	h.contains(page, http.StatusOK, `class="took">1m23s<`, `class="took">0.4s<`,
		`<b><a href="/tasks/`+other+`">follow-up by Dana</a></b>`,
		`Dana: <a href="/tasks/`+other+`">On Mondays</a>`, `datetime="2026-11-02T10:00:00.000Z" data-show="clock"`,
		`hidden>1 failed</button>`)
	for _, m := range regexp.MustCompile(`<li class="entry[^>]* id="(e-[0-9-]+)"`).FindAllStringSubmatch(page.text, -1) {
		h.contains(page, http.StatusOK, `href="#`+m[1]+`"`)
	}
}

// The page says what a run could not reach, and in the mode learn what it has reached.
func TestNetworkOfATask(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	end := func(n int, r *agent.EgressReport) string {
		id := h.submit(n, func(t *tasks.Task) { t.Thread = fmt.Sprint("test/", n) })
		h.End(h.Claim(id), tasks.Ending{Kind: tasks.Answered, Result: agent.Result{Text: "ok", Egress: r}})
		return "/tasks/" + id
	}
	refused := agent.EgressReport{Reached: []string{"proxy.golang.org"}, Refused: []agent.EgressRefusal{{Host: "evil.example<b>", Why: "which the egress list does not allow"}}}
	h.contains(h.get(end(1, &refused)), http.StatusOK, "Tried to reach evil.example&lt;b&gt;, which the egress list does not allow.", "!proxy.golang.org", "!errand.yml")
	learned := agent.EgressReport{Reached: []string{"pypi.org", "files.example:8443"}, Learn: true}
	h.contains(h.get(end(2, &learned)), http.StatusOK, "<pre>egress:\n  - &#34;files.example:8443&#34;\n  - &#34;pypi.org&#34;\n</pre>", "!Tried to reach")
	for range 11 {
		refused.Refused = append(refused.Refused, refused.Refused[0])
	}
	h.contains(h.get(end(3, &refused)), http.StatusOK, "and 2 more")
	h.contains(h.get(end(4, &agent.EgressReport{Reached: []string{"pypi.org"}})), http.StatusOK, "!<h2>Network")
}

// The page and the API say which model and effort counted, and whose wish that was.
func TestSettingsOfATask(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.submit(1, func(t *tasks.Task) { t.Options.Effort = "high" })
	path := "/tasks/" + id
	h.contains(h.get(path), http.StatusOK, "<dt>effort</dt><dd>high</dd>", "!set by")
	h.End(h.Claim(id), tasks.Ending{
		Kind: tasks.Answered, Result: agent.Result{Outcome: agent.Done, Text: "42"},
		Settings: []policy.Setting{
			{Name: "model", Value: "haiku", Of: "channel C1"}, {Name: "effort", Value: "high", Of: "the request"},
		},
	})
	h.contains(h.get(path), http.StatusOK, "<dt>model set by</dt><dd>channel C1: haiku</dd>",
		"<dt>effort set by</dt><dd>the request: high</dd>", "!<dt>effort</dt>")
	h.contains(h.get("/api"+path), http.StatusOK, `"name": "model"`, `"value": "haiku"`, `"of": "channel C1"`)
}

// The page and the API show how people have rated the answer, and what was wrong with it.
func TestVotesOfATask(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.submit(1)
	path := "/tasks/" + id
	h.contains(h.get(path), http.StatusOK, "!Votes")
	c := h.Claim(id)
	h.End(c, tasks.Ending{Kind: tasks.Answered, Result: agent.Result{Outcome: agent.Done, Text: "42"}})
	for _, v := range [][3]string{{"U1", "good", ""}, {"U2", "bad", "It is <b>43\u202e."}} {
		if _, err := h.Store.Votes.Vote(t.Context(), id, v[0], store.Vote{Vote: v[1], Reason: v[2]}); err != nil {
			t.Fatal(err)
		}
	}
	h.contains(h.get(path), http.StatusOK, "<h2>Votes</h2>", "<li>👍 U1</li>", `<li>👎 U2: It is &lt;b&gt;43\u202e.</li>`)
	h.contains(h.get("/api"+path), http.StatusOK, `"person": "U1"`, `"vote": "good"`, `"vote": "bad"`, `"reason": "It is `)
}
