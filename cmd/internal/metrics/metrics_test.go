package metrics

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// board is a fleet as a test wants it.
type board struct {
	live     []store.LiveRecord
	unposted store.Unposted
	workers  []store.Worker
	err      error
}

func (b *board) Live(context.Context) ([]store.LiveRecord, error) { return b.live, b.err }
func (b *board) Unposted(context.Context) (store.Unposted, error) { return b.unposted, b.err }
func (b *board) Workers(context.Context) ([]store.Worker, error)  { return b.workers, b.err }
func (b *board) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 429}, nil
}
func (b *board) waits(class string, created, at time.Time) { b.add(class, store.Waiting, created, at) }
func (b *board) add(class string, s store.State, c, at time.Time) {
	b.live = append(b.live, store.LiveRecord{Record: store.Record{Class: class, State: s, Created: c, At: at}})
}

// everything is a registry in which each metric has a value.
func everything(t *testing.T) *prometheus.Registry {
	t.Helper()
	r := NewRegistry("v1")
	NewFleet(r, &board{})
	NewDisk(r, t.TempDir())
	NewDesk(r).Submitted(tasks.Task{Source: "chat", Class: tasks.Interactive}, tasks.Receipt{New: true})
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://github.invalid/", nil)
	if _, err := NewServices(r).Transport("github", &board{}).RoundTrip(req); err != nil {
		t.Fatal(err)
	}
	m, task := NewTasks(r, nil), tasks.Task{Source: "chat", Class: tasks.Interactive}
	m.Began(task, time.Second)
	m.Ran(task, agent.Result{Signal: "SIGKILL", API: &agent.API{Calls: 2, Errors: map[int]int{529: 1}}})
	m.Ended(task, tasks.Ending{Kind: tasks.Answered}, time.Second)
	return r
}

// The table in docs/operations.md has all metrics of ours and no other, and none breaks the rules for names.
func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	r := everything(t)
	problems, err := testutil.GatherAndLint(r)
	if err != nil || len(problems) > 0 {
		t.Errorf("lint: %v, %v", problems, err)
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "errand_") {
			have = append(have, f.GetName())
		}
	}
	doc, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(errand_[a-z_]+)`").FindAllSubmatch(doc, -1) {
		told = append(told, string(row[1]))
	}
	slices.Sort(told)
	if diff := cmp.Diff(have, told); diff != "" {
		t.Errorf("docs/operations.md (-metrics +table):\n%s", diff)
	}
}

// What a run used is counted under labels that do not grow with use.
func TestTasks(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	m := NewTasks(r, []string{"acme/api"})
	task := func(repo string) tasks.Task {
		return tasks.Task{ID: "1-x", Source: "slack", Class: tasks.Interactive, Repo: repo, Actor: "ann"}
	}
	m.Ran(task("Acme/API"), agent.Result{Outcome: agent.Done, CostUSD: .5, Model: "opus", Usage: agent.Usage{Input: 10, CacheRead: 7}})
	m.Ran(task("acme/secret"), agent.Result{Outcome: agent.Stalled, CostUSD: .25, Model: "opus", Signal: "SIGKILL", Usage: agent.Usage{Input: 5}})
	m.Ran(task(""), agent.Result{Outcome: agent.Failed, Error: agent.NewError(agent.ClassAuth, "no"), API: &agent.API{Calls: 3, Errors: map[int]int{401: 3}}})
	m.Returned(tasks.Interactive, tasks.ReturnRetry)
	m.Ended(task(""), tasks.Ending{Kind: tasks.Answered, Covers: []string{"a", "b"}}, 2*time.Second)
	m.Ended(task(""), tasks.Ending{Kind: tasks.Failed, Result: agent.Result{Error: agent.NewError(agent.ClassAuth, "no")}}, -time.Second)
	expect(t, r, `
errand_model_calls_total 3
errand_model_errors_total{status="401"} 3
errand_outbox_lag_seconds_count 2
errand_outbox_lag_seconds_sum 2
errand_run_cost_usd_total{model="none",repository="none",source="slack"} 0
errand_run_cost_usd_total{model="opus",repository="acme/api",source="slack"} 0.5
errand_run_cost_usd_total{model="opus",repository="other",source="slack"} 0.25
errand_run_kills_total{signal="SIGKILL"} 1
errand_run_tokens_total{kind="cache_read",model="opus"} 7
errand_run_tokens_total{kind="input",model="opus"} 15
errand_runs_total{class="interactive",error="",outcome="done",source="slack"} 1
errand_runs_total{class="interactive",error="",outcome="stalled",source="slack"} 1
errand_runs_total{class="interactive",error="auth",outcome="failed",source="slack"} 1
errand_task_endings_total{class="interactive",error="",kind="answered",source="slack"} 1
errand_task_endings_total{class="interactive",error="auth",kind="failed",source="slack"} 1
errand_task_returns_total{class="interactive",reason="claim_lost"} 0
errand_task_returns_total{class="interactive",reason="retry"} 1
errand_tasks_absorbed_total{source="slack"} 2`)
}

func TestFewModels(t *testing.T) {
	t.Parallel()
	f := newFew(2)
	for _, c := range [][2]string{{"a", "a"}, {"b", "b"}, {"c", other}, {"a", "a"}, {"", other}} {
		if got := f.of(c[0]); got != c[1] {
			t.Errorf("%q is %q, want %q", c[0], got, c[1])
		}
	}
}

func TestDesk(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	m, task := NewDesk(r), tasks.Task{Source: "github", Class: tasks.Review}
	for _, receipt := range []tasks.Receipt{{New: true}, {}, {}, {Heard: true, New: true}} {
		m.Submitted(task, receipt)
	}
	expect(t, r, `
errand_tasks_submitted_total{class="review",result="answer",source="github"} 1
errand_tasks_submitted_total{class="review",result="known",source="github"} 2
errand_tasks_submitted_total{class="review",result="new",source="github"} 1`)
}

// Both of GitHub's ways to say that it is too much are told from its refusals.
func TestServices(t *testing.T) {
	t.Parallel()
	answers := make(chan func(http.ResponseWriter), 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { (<-answers)(w) }))
	r := prometheus.NewRegistry()
	c := &http.Client{Transport: NewServices(r).Transport("github", http.DefaultTransport)}
	get := func() error {
		resp, err := c.Get(s.URL)
		if err == nil {
			_ = resp.Body.Close()
		}
		return err
	}
	for _, a := range []struct {
		status int
		header string
		value  string
	}{{200, "", ""}, {429, "", ""}, {403, "Retry-After", "3"}, {403, "X-RateLimit-Remaining", "0"}, {403, "X-RateLimit-Remaining", "9"}, {502, "", ""}} {
		answers <- func(w http.ResponseWriter) { w.Header().Set(a.header, a.value); w.WriteHeader(a.status) }
		if err := get(); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	if get() == nil {
		t.Error("a closed server answered")
	}
	expect(t, r, `
errand_service_request_duration_seconds_count{service="github"} 7
errand_service_requests_total{result="2xx",service="github"} 1
errand_service_requests_total{result="4xx",service="github"} 1
errand_service_requests_total{result="5xx",service="github"} 1
errand_service_requests_total{result="failed",service="github"} 1
errand_service_requests_total{result="limited",service="github"} 3`)
}

// Each class is told, also when nothing waits in it; what is put off waits from its time on.
func TestFleet(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	ago := func(s int) time.Time { return now.Add(-time.Duration(s) * time.Second) }
	b := &board{unposted: store.Unposted{Endings: 2, Oldest: ago(90)}, workers: []store.Worker{
		{Slots: 4, Running: 3, Health: []byte(`{"ok":true}`)}, {Slots: 4, Draining: true, Health: []byte(`{"ok":true}`)},
		{Slots: 2, Health: []byte(`{"ok":false}`)}, {Slots: 2},
	}}
	b.waits(tasks.Interactive, ago(500), ago(20))
	b.waits(tasks.Interactive, ago(30), time.Time{})
	b.waits(tasks.Review, ago(5), ago(-60))
	b.add(tasks.Interactive, store.Running, ago(900), time.Time{})
	r := prometheus.NewRegistry()
	r.MustRegister(newFleet(b, func() time.Time { return now }))
	expect(t, r, `
errand_fleet_up 1
errand_outbox_endings 2
errand_outbox_oldest_seconds 90
errand_queue_oldest_seconds{class="background"} 0
errand_queue_oldest_seconds{class="interactive"} 30
errand_queue_oldest_seconds{class="review"} 0
errand_queue_tasks{class="background",state="running"} 0
errand_queue_tasks{class="background",state="waiting"} 0
errand_queue_tasks{class="interactive",state="running"} 1
errand_queue_tasks{class="interactive",state="waiting"} 2
errand_queue_tasks{class="review",state="waiting"} 1
errand_slots 12
errand_slots_taken 3
errand_workers{state="draining"} 1
errand_workers{state="ready"} 1
errand_workers{state="unable"} 2`)
	b.err = errors.New("redis is away")
	if got := lines(t, r); !slices.Equal(got, []string{"errand_fleet_up 0"}) {
		t.Errorf("without Redis: %q", got)
	}
}

func TestDisk(t *testing.T) {
	t.Parallel()
	there, missing := prometheus.NewRegistry(), prometheus.NewRegistry()
	NewDisk(there, t.TempDir())
	NewDisk(missing, filepath.Join(t.TempDir(), "not yet"))
	if n := len(lines(t, there)); n != 2 {
		t.Errorf("%d metrics of a disk", n)
	}
	if got := lines(t, missing); len(got) > 0 {
		t.Errorf("of a directory that is not there: %q", got)
	}
}

// expect wants these lines among those of the registry.
func expect(t *testing.T, r *prometheus.Registry, want string) {
	t.Helper()
	got := lines(t, r)
	for line := range strings.SplitSeq(strings.TrimSpace(want), "\n") {
		if !slices.Contains(got, line) {
			t.Errorf("no %s in\n%s", line, strings.Join(got, "\n"))
		}
	}
}

// lines are what Prometheus reads.
func lines(t *testing.T, r *prometheus.Registry) (list []string) {
	t.Helper()
	w := httptest.NewRecorder()
	Handler(r, slog.New(slog.DiscardHandler)).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	body, err := io.ReadAll(w.Body)
	if err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d, %v", w.Code, err)
	}
	for line := range strings.Lines(string(body)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			list = append(list, line)
		}
	}
	return list
}
