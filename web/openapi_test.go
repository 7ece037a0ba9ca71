package web

import (
	"context"
	"encoding/json"
	"go/scanner"
	gotoken "go/token"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/internal/openapi"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/capacity"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/queue"
	"github.com/errand-fleet/errand/web/api"
	"github.com/errand-fleet/errand/web/auth"
	"github.com/errand-fleet/errand/web/internal/respond"
	"github.com/errand-fleet/errand/web/internal/view"
)

func describedAPI(t *testing.T) *openapi.Document {
	t.Helper()
	d, err := openapi.Load("api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

var apiRoute = regexp.MustCompile(`^(GET|POST|PUT|PATCH|DELETE) /api/\S+$`)

// A route of the API or of a source that is not described fails this test: add it to openapi.yaml.
func TestEveryRouteIsDescribed(t *testing.T) {
	t.Parallel()
	var routes []string
	for _, dir := range []string{".", "../tasks", "../cmd"} {
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if strings.HasPrefix(path, "../cmd/enqueue/") { // the client requests routes and serves none
				return nil
			}
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			src, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			var s scanner.Scanner
			s.Init(gotoken.NewFileSet().AddFile(path, -1, len(src)), src, nil, 0)
			for _, tok, lit := s.Scan(); tok != gotoken.EOF; _, tok, lit = s.Scan() {
				if text, err := strconv.Unquote(lit); tok == gotoken.STRING && err == nil &&
					apiRoute.MatchString(text) {
					routes = append(routes, text)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(routes)
	if diff := cmp.Diff(routes, describedAPI(t).Operations()); diff != "" {
		t.Errorf("openapi.yaml (-routes +described):\n%s", diff)
	}
}

// Every property of a response is described, even if no test produces it.
func TestEveryPropertyIsDescribed(t *testing.T) {
	t.Parallel()
	d := describedAPI(t)
	for schema, v := range map[string]any{
		"Problem": respond.Problem{}, "Listing": view.Listing{}, "Task": view.Task{}, "Request": tasks.Task{},
		"Ending": tasks.Ending{}, "Result": agent.Result{}, "Failure": agent.Error{}, "Usage": agent.Usage{},
		"Question": tasks.Question{}, "Answer": tasks.Answer{}, "Event": agent.Event{}, "Fleet": view.Fleet{},
		"Queue": queue.Depth{}, "Pool": capacity.PoolState{}, "Halt": store.Halt{}, "Halted": desk.Halted{},
		"Rebuild": store.Rebuild{},
		"Outlook": capacity.Outlook{}, "Fact": capacity.Fact{}, "Worker": view.Worker{}, "Finding": store.Finding{},
		"Costs": api.Costs{}, "Findings": api.Findings{}, "Acceptance": tasks.Acceptance{}, "CostRow": desk.CostRow{},
		"CostSum": desk.CostSum{}, "ConfigReport": view.ConfigReport{}, "Setting": config.Setting{},
		"AuditPage": api.AuditPage{}, "AuditEntry": desk.AuditEntry{},
		"Verified": api.Verified{}, "TokenRequest": api.TokenRequest{}, "Token": auth.Token{},
		"Taken": desk.Taken{}, "NewToken": api.NewToken{}, "TokenList": api.TokenList{}, "Offer": capacity.Offer{},
		"FailedEvents": api.FailedEvents{}, "FailedEvent": tasks.FailedEvent{}, "Replayed": api.Replayed{},
		"Schedules": api.Schedules{}, "Schedule": tasks.Schedule{}, "Project": view.Project{},
	} {
		var names []string
		for _, f := range reflect.VisibleFields(reflect.TypeOf(v)) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name != "" && name != "-" && name != "origin" { // never sent
				names = append(names, name)
			}
		}
		slices.Sort(names)
		if diff := cmp.Diff(names, d.Properties(schema)); diff != "" {
			t.Errorf("%s (-sent +described):\n%s", schema, diff)
		}
	}
}

// scheduler has one schedule, x.
type scheduler struct{}

func (scheduler) Schedules(context.Context) ([]tasks.Schedule, error) {
	return []tasks.Schedule{{
		Name: "x", When: "every hour", Prompt: "Go.", Repo: "acme/api", Branch: "next", Profile: agent.Read, MaxUSD: 2,
		Results: "C0123ABCD", Paused: time.Now(), Problem: "Refused.", Task: "1-schedule-x", Last: time.Now(),
	}}, nil
}

func (scheduler) ResumeSchedule(_ context.Context, name string) (tasks.Schedule, error) {
	if name != "x" {
		return tasks.Schedule{}, tasks.ErrNotFound
	}
	return tasks.Schedule{Name: name, When: "every hour", Prompt: "Go.", Next: time.Now()}, nil
}

// receivers have one failed delivery, x.
type receivers struct{}

func (receivers) Failed(context.Context) ([]tasks.FailedEvent, error) {
	return []tasks.FailedEvent{{
		ID: "x", Source: "webhook", Kind: "ops", Attempts: 2, Failed: time.Now(), Problem: "refused", Next: time.Now(),
	}}, nil
}

func (receivers) Replay(_ context.Context, id string) error {
	if id != "x" {
		return tasks.ErrNotFound
	}
	return nil
}

// A parameter that an endpoint with a query does not read is refused: a filter with a wrong name would select all.
func TestUnknownParameters(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.submit(1)
	for path, known := range map[string]string{
		"/api/tasks": "state, source, repository, person,", "/api/costs": "by, days,", "/api/audit": "who, what,",
		"/api/findings": "repository.", "/api/agents": "repo, projectPath.", "/api/health": "projectPath.",
		"/api/health/repository": "repo.", "/api/tasks/" + id + "/events": "after.", "/api/tasks/" + id + "/log": "raw.",
	} {
		h.contains(h.get(path+"?assignee=ann"), http.StatusBadRequest, `assignee\" is none of the parameters: `+known)
	}
	h.contains(h.get("/api/tasks/"+id+"?assignee=ann"), http.StatusOK, id) // it reads none
}

// Every described response occurs and matches its description.
func TestAnswersAreAsDescribed(t *testing.T) {
	t.Parallel()
	d := describedAPI(t)
	h := newHarness(t, func(c *Config) {
		c.Scheduler, c.Inbox, c.Reviews = scheduler{}, receivers{}, map[string]tasks.Reviewer{"test": &reviewer{}}
	})
	check := func(method, path, body string, hs ...string) {
		t.Helper()
		a := h.do(method, path, body, hs...)
		if err := d.Check(a.Response, []byte(a.text)); err != nil {
			t.Error(err)
		}
	}
	get := func(path string, hs ...string) { t.Helper(); check("GET", path, "", hs...) }
	post := func(path, body string) { t.Helper(); check("POST", path, body) }

	get("/api/config")
	get("/api/health") // no worker: 503
	// A worker counts as alive for 15 s after each beat.
	beat := func() {
		t.Helper()
		if _, err := h.Store.Workers.Beat(t.Context(), store.Worker{
			ID: "w", Host: "m", Started: time.Now(), Health: json.RawMessage(`{"ok":true}`),
		}); err != nil {
			t.Fatal(err)
		}
	}
	beat()
	get("/api/health")
	if err := h.Store.Credentials.Hold(t.Context(), "0a1b", time.Now().Add(time.Hour), time.Second,
		"the usage limit is reached"); err != nil {
		t.Fatal(err)
	}
	get("/api/health")
	get("/api/health", "Authorization", "Bearer wrong")
	for _, path := range []string{"classes/review/pause", "workers/m/cordon", "classes/none/pause"} {
		post("/api/fleet/"+path, "")
	}
	get("/api/health")
	post("/api/fleet/classes/review/resume", "")
	post("/api/fleet/workers/m/uncordon", "")
	h.Tell(func(q string) string {
		if strings.Contains(q, "outlook") {
			return `{"outlook":{"facts":[{"name":"set-up","values":["npm ci"]}],"findings":[]}}`
		}
		return offered
	})
	get("/api/health/repository?repo=acme/web")
	for _, name := range []string{"acme%2Fapi", "none"} {
		post("/api/fleet/environments/"+name+"/rebuild", "")
	}
	beat()
	for _, name := range []string{"x", "none"} {
		post("/api/schedules/"+name+"/resume", "")
	}
	get("/api/schedules")
	for _, id := range []string{"x", "none"} {
		post("/api/inbox/"+id+"/replay", "")
	}
	get("/api/inbox")
	get("/api/health?projectPath=/srv/x")
	get("/api/agents?repo=acme/api")
	get("/api/health/services")
	get("/api/openapi.yaml")

	id := h.submit(1, func(t *tasks.Task) {
		t.Repo, t.Options = "acme/api", tasks.Options{Model: "opus", Limit: time.Minute}
	})
	waiting := h.submit(2)
	c := h.Claim(id)
	if _, err := c.Ask(t.Context(), "k", h.JSON(tasks.Question{
		Key: "k", Text: "Which?", Options: []string{"red"},
	})); err != nil {
		t.Fatal(err)
	}
	h.Append(c, agent.Event{
		Kind: agent.ToolUse, Tool: "Bash", ToolID: "1", Input: json.RawMessage(`{"command":"ls"}`), Text: "$ ls",
		Time: time.Now(),
	})
	get("/api/tasks")
	get("/api/tasks?limit=1")
	get("/api/tasks/" + id)
	get("/api/tasks/" + waiting)
	post("/api/tasks/"+id+"/answer", `{"answer":"red"}`)
	for range 2 { // it waits, and then it has ended
		post("/api/tasks/"+waiting+"/take", "")
		post("/api/tasks/"+waiting+"/cancel", "")
	}
	h.log(id+".log", "text")
	h.log(id+".ndjson", "{}")
	get("/api/tasks/" + id + "/log")
	get("/api/tasks/" + id + "/log?raw=1")
	get("/api/tasks/"+id+"/log", "Range", "bytes=0-1")
	get("/api/tasks/"+id+"/log", "Range", "bytes=9-")
	h.changed(c, tasks.Changes{})
	get("/api/tasks/" + id + "/diff")
	h.End(c, tasks.Ending{Kind: tasks.Failed, Changed: tasks.Diffstat{Files: 1}, Result: agent.Result{
		Outcome: agent.Failed, Partial: "So far", Error: agent.NewError(agent.ClassInternal, "boom"),
		Started: time.Now(), Turns: 1,
	}})
	get("/api/tasks/" + id)
	get("/api/tasks/" + id + "/events")
	post("/api/tasks/"+id+"/take", "")
	post("/api/tasks/"+id+"/retry", "")

	get("/api/costs?by=person&by=model")
	get("/api/costs?format=csv")
	get("/api/findings?repository=acme/api")
	post("/api/tokens", `{"name": "ci", "role": "user", "repositories": ["acme/*"], "days": 30}`)
	post("/api/tokens", `{"name": "ci", "role": "user", "days": 30}`)
	get("/api/tokens")
	check("DELETE", "/api/tokens/ci", "")
	if err := h.Store.Links.Save(t.Context(), "U1",
		json.RawMessage(`{"user": "U1", "name": "Ann", "team": "T1", "login": "ann", "until": "2999-01-01T00:00:00Z"}`)); err != nil {
		t.Fatal(err)
	}
	get("/api/links")
	check("DELETE", "/api/links/U1", "")
	get("/api/audit")
	get("/api/audit?limit=0")
	get("/api/audit/verify")

	for _, op := range d.Operations() { // errors are problems everywhere
		method, path, _ := strings.Cut(op, " ")
		check(method, strings.Replace(path, "{id}", "x", 1), "", "Authorization", "Bearer wrong")
	}
	for _, answer := range d.Unseen() {
		switch answer {
		case "POST /api/chat 200", "GET /api/tasks/{id}/log 302": // in tasks/chat and TestAbsorbedTask
		default:
			t.Errorf("%s is described and did not occur", answer)
		}
	}
}

// Responses that are not described fail the check, so the tests above prove something.
func TestWhatIsNotDescribedIsNoticed(t *testing.T) {
	t.Parallel()
	d := describedAPI(t)
	request := func(path string) *http.Request {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://errand.test"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for name, tc := range map[string]struct{ path, kind, body string }{
		"route":        {"/api/nothing", "application/json", `{}`},
		"content type": {"/api/health", "text/html", `{}`},
		"property":     {"/api/health/services", "application/json", `{"findings":[],"more":1}`},
		"missing":      {"/api/health/services", "application/json", `{}`},
		"type":         {"/api/health/services", "application/json", `{"findings":7}`},
		"nested": {
			"/api/health/services", "application/json", `{"findings":[{"severity":"odd","what":"","why":""}]}`,
		},
		"no JSON":      {"/api/health/services", "application/json", `x`},
		"event":        {"/api/tasks/x/events", "text/event-stream", "id: 1\ndata: {\"kind\":7}\n\n"},
		"event's name": {"/api/tasks/x/events", "text/event-stream", "event: odd\ndata: {}\n\n"},
	} {
		resp := &http.Response{
			StatusCode: http.StatusOK, Status: "200 OK", Request: request(tc.path),
			Header: http.Header{"Content-Type": {tc.kind}},
		}
		if err := d.Check(resp, []byte(tc.body)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
