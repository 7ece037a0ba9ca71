package web

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/web/internal/view"
)

const unknown = "1700000000999999-test-x"

func TestTasksAreListed(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	var ids []string
	for n := range 4 {
		ids = append(ids, h.submit(n))
	}
	h.End(h.Claim(ids[0]), tasks.Ending{Kind: tasks.Answered})
	h.Claim(ids[1])
	for query, want := range map[string][]string{ // the IDs, and what comes after a colon
		"":                            {ids[3], ids[2], ids[1], ids[0], ":"},
		"?state=waiting":              {ids[3], ids[2], ":"},
		"?state=running":              {ids[1], ":"},
		"?state=ended&limit=2":        {ids[0], ":"},
		"?limit=2":                    {ids[3], ids[2], ":" + ids[2]},
		"?limit=2&before=" + ids[2]:   {ids[1], ids[0], ":" + ids[0]},
		"?limit=200&before=" + ids[0]: {":"},
	} {
		var l view.Listing
		h.into(h.get("/api/tasks"+query), http.StatusOK, &l)
		var got []string
		for _, v := range l.Tasks {
			got = append(got, v.Task.ID)
		}
		if diff := cmp.Diff(want, append(got, ":"+l.Next)); diff != "" {
			t.Errorf("%s: %s", query, diff)
		}
	}
	if a := h.get("/api/tasks?before=" + ids[0]); !strings.Contains(a.text, `"tasks": []`) {
		t.Errorf("an empty list is %s", a.text)
	}
	for _, query := range []string{
		"state=lost", "limit=0", "limit=201", "limit=x", "limit=-1", "before=x", "before=../etc", "ending=well",
		"text=" + strings.Repeat("x", 201),
	} {
		h.problem(h.get("/api/tasks?"+query), http.StatusBadRequest)
	}
	if a := h.get("/api/tasks?state=answered"); !strings.Contains(a.text, "The filter ending says how tasks ended.") {
		t.Errorf("an ending as the state: %s", a.text)
	}
}

func TestTaskIsShownWithoutItsOrigin(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.submit(1, func(t *tasks.Task) { t.Origin = json.RawMessage(`{"response_url":"s3cret"}`) })
	c := h.Claim(id)
	h.Append(c, agent.Event{Kind: agent.Text, Text: "x"})
	h.End(c, tasks.Ending{Kind: tasks.TimedOut, Limit: "2h0m0s", Result: agent.Result{CostUSD: 1.5, Partial: "half"}})
	var v view.Task
	h.into(h.get("/api/tasks/"+id), http.StatusOK, &v)
	if v.Title != "Do it" || !strings.HasPrefix(v.Sentence, "Stopped at the time limit of 2h0m0s") ||
		v.Ending.Result.CostUSD != 1.5 || v.Worker != "worker-1" {
		t.Errorf("got %+v", v)
	}
	for _, a := range []answer{
		h.get("/api/tasks/" + id), h.get("/api/tasks"), h.get("/"), h.get("/tasks/" + id),
		h.get("/api/tasks/" + id + "/events"), h.do("POST", "/api/tasks/"+id+"/cancel", ""),
		h.do("POST", "/api/tasks/"+id+"/retry", ""),
	} {
		if a.StatusCode >= 300 || strings.Contains(a.text, "s3cret") || strings.Contains(a.text, "origin") {
			t.Errorf("%s %s: %s: %s", a.Request.Method, a.Request.URL.Path, a.Status, a.text)
		}
	}
}

func TestUnknownTasks(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for _, path := range []string{
		"GET /api/tasks/%s", "GET /api/tasks/%s/events", "GET /api/tasks/%s/log", "POST /api/tasks/%s/cancel",
		"POST /api/tasks/%s/retry", "GET /tasks/%s", "POST /tasks/%s/cancel", "POST /tasks/%s/retry",
	} {
		method, path, _ := strings.Cut(path, " ")
		h.problem(h.do(method, strings.Replace(path, "%s", unknown, 1), ""), http.StatusNotFound)
		for _, id := range []string{"x", "..%2f..%2fetc%2fpasswd", unknown + "%0a", "1-test-x"} {
			want := http.StatusNotFound
			if id == "x" {
				want = http.StatusBadRequest
			}
			h.problem(h.do(method, strings.Replace(path, "%s", id, 1), ""), want)
		}
	}
}

func TestCancelAndRetry(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	running, waiting := h.submit(1), h.submit(2)
	c := h.Claim(running)

	var v view.Task
	h.problem(h.do("POST", "/api/tasks/"+running+"/retry", ""), http.StatusConflict)
	h.into(h.do("POST", "/api/tasks/"+running+"/cancel", ""), http.StatusAccepted, &v)
	if v.State != "running" || v.Cancel != "console" {
		t.Errorf("a running task is %s, cancelled by %q", v.State, v.Cancel)
	}
	h.End(c, tasks.Ending{Kind: tasks.Cancelled, By: "console"})

	h.problem(h.do("POST", "/api/tasks/"+waiting+"/retry", ""), http.StatusConflict)
	h.into(h.do("POST", "/api/tasks/"+waiting+"/cancel", ""), http.StatusAccepted, &v)
	if v.State != "ended" || v.Ending.Kind != tasks.Cancelled ||
		v.Sentence != "Stopped in the console. Ask again to continue." {
		t.Errorf("a waiting task is %s, %+v, %q", v.State, v.Ending, v.Sentence)
	}
	v = view.Task{}
	h.into(h.do("POST", "/api/tasks/"+waiting+"/retry", ""), http.StatusAccepted, &v)
	if v.State != "waiting" || v.Ending != nil || v.Cancel != "" {
		t.Errorf("tried again it is %s, %+v, cancelled by %q", v.State, v.Ending, v.Cancel)
	}
}

// The answer that a task shares with others is posted before the task runs again.
func TestRetryBeforeTheCommonAnswer(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	first, second := h.submit(1), h.submit(2)
	c := h.Claim(first)
	if _, ok, err := c.Take(t.Context(), false, nil); err != nil || !ok {
		t.Fatal(ok, err)
	}
	e := tasks.Ending{Kind: tasks.Answered, Covers: []string{second}}.Encode()
	if err := c.EndWith(t.Context(), e, store.Covered{IDs: []string{second}, Ending: e}); err != nil {
		t.Fatal(err)
	}
	why := h.problem(h.do("POST", "/api/tasks/"+first+"/retry", ""), http.StatusConflict)
	if !strings.Contains(why, "still being posted") {
		t.Error(why)
	}
}

func TestErrorsAreProblems(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.problem(h.get("/api/nothing"), http.StatusNotFound)
	h.problem(h.get("/nothing"), http.StatusNotFound)
	for _, path := range []string{
		"POST /api/tasks", "DELETE /api/tasks/" + unknown, "GET /api/tasks/" + unknown + "/cancel",
	} {
		method, path, _ := strings.Cut(path, " ")
		a := h.do(method, path, "", "Accept", "text/html") // the API does not change with who asks
		h.problem(a, http.StatusMethodNotAllowed)
		if a.Header.Get("Allow") == "" {
			t.Errorf("%s %s: it does not say what is allowed", method, path)
		}
	}
	h.contains(h.get("/nothing", "Accept", "text/html"), http.StatusNotFound, "<h1>Not found</h1>")
	_ = h.redis.Close()
	for _, path := range []string{
		"/api/tasks", "/api/tasks/" + unknown, "/api/tasks/" + unknown + "/events", "/tasks/" + unknown,
	} {
		h.problem(h.get(path), http.StatusServiceUnavailable)
	}
}
