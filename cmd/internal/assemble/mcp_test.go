package assemble

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/internal/redisserver/redistest"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/taskstest"
)

const consoleToken = "a-console-token-0123"

// delegation is a whole front door with the chat, and agents elsewhere that use it as an MCP server.
type delegation struct {
	taskstest.Worker
	parts *Parts
	door  *Door
	url   string
}

func newDelegation(t *testing.T) *delegation {
	t.Helper()
	c := config.Config{
		Redis: config.Redis{URL: config.RedisURL(redistest.Start(t))}, HTTP: config.HTTP{ConsoleToken: consoleToken},
		Paths:   config.Paths{State: t.TempDir()},
		Routing: config.Routing{Repositories: map[string]config.Repository{"acme/api": {}, "acme/web": {}}},
	}
	p, door := openFrontDoor(t, c, slog.New(slog.DiscardHandler))
	server := httptest.NewServer(door)
	t.Cleanup(server.Close)
	return &delegation{
		Worker: taskstest.Worker{T: t, Store: p.Store, Desk: p.Desk}, parts: p, door: door, url: server.URL,
	}
}

// send sends a request with a token.
func (d *delegation) send(method, path, token, body string) *http.Response {
	d.Helper()
	req, err := http.NewRequestWithContext(d.Context(), method, d.url+path, strings.NewReader(body))
	if err != nil {
		d.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		d.Fatal(err)
	}
	d.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// token creates an API token.
func (d *delegation) token(name, role string, repositories ...string) string {
	d.Helper()
	body, _ := json.Marshal(map[string]any{"name": name, "role": role, "repositories": repositories, "days": 1})
	var made struct{ Token string }
	if err := json.NewDecoder(d.send(http.MethodPost, "/api/tokens", consoleToken, string(body)).Body).Decode(&made); err != nil || made.Token == "" {
		d.Fatal(made, err)
	}
	return made.Token
}

// bearer adds a token to requests.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// connect connects the SDK's client.
func (d *delegation) connect(token string) *mcp.ClientSession {
	d.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "laptop", Version: "1"}, nil)
	s, err := client.Connect(d.Context(), &mcp.StreamableClientTransport{
		Endpoint: d.url + "/mcp", HTTPClient: &http.Client{Transport: bearer(token)},
	}, nil)
	if err != nil {
		d.Fatal(err)
	}
	d.Cleanup(func() { _ = s.Close() })
	return s
}

// call calls a tool. The result is decoded into out, or its text is returned if the call failed.
func (d *delegation) call(s *mcp.ClientSession, tool string, args map[string]any, out any) (failed string) {
	d.Helper()
	r, err := s.CallTool(d.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		d.Fatalf("%s: %v", tool, err)
	}
	text, _ := r.Content[0].(*mcp.TextContent)
	if r.IsError {
		return text.Text
	}
	if err := json.Unmarshal([]byte(text.Text), out); err != nil {
		d.Fatalf("%s: %s: %v", tool, text.Text, err)
	}
	return ""
}

// mustCall is call for one that works.
func (d *delegation) mustCall(s *mcp.ClientSession, tool string, args map[string]any, out any) {
	d.Helper()
	if failed := d.call(s, tool, args, out); failed != "" {
		d.Fatalf("%s: %s", tool, failed)
	}
}

// state is a result of status.
type state struct {
	Task, State, Headline, Ending, Answer, Problem, Note string

	PullRequest string  `json:"pull_request"`
	Cost        float64 `json:"cost_usd"`
	Questions   []struct {
		Question, Text string
		Options        []string
	}
}

// An agent submits a task, waits, answers its question, reads its log and answer, and cancels another one.
func TestDelegate(t *testing.T) {
	t.Parallel()
	d := newDelegation(t)
	s := d.connect(d.token("laptop", "user"))
	listed, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range listed.Tools {
		names = append(names, tool.Name)
	}
	if want := []string{
		"answer", "cancel", "log", "status", "submit",
	}; !slices.Equal(slices.Sorted(slices.Values(names)), want) {
		t.Errorf("tools %v, want %v", names, want)
	}

	var made struct{ Task, Thread string }
	d.mustCall(s, "submit", map[string]any{
		"message": "Count the tests.", "repository": "acme/api", "budget": 1.5, "timeout": "30m",
	}, &made)
	if got := d.Status(made.Task).Task; got.Actor != "token:laptop" || got.Repo != "acme/api" ||
		got.Options.MaxUSD != 1.5 || got.Options.Limit != 30*time.Minute || got.Profile != agent.Write {
		t.Errorf("submitted %+v", got)
	}
	var st state
	d.mustCall(s, "status", map[string]any{"task": made.Task}, &st)
	if st.State != "waiting" || st.Headline == "" || st.Task != made.Task {
		t.Errorf("status %+v", st)
	}

	c := d.Claim(made.Task)
	asked := make(chan error, 1)
	go func() { // while status waits
		_, err := c.Ask(t.Context(), "k", d.JSON(tasks.Question{
			Key: "k", Text: "Which ones?", Options: []string{"fast", "all"},
		}))
		asked <- err
	}()
	d.mustCall(s, "status", map[string]any{"task": made.Task, "wait_seconds": 50}, &st)
	if err := <-asked; err != nil || st.State != "running" || len(st.Questions) != 1 ||
		st.Questions[0].Question != "k" || st.Questions[0].Options[1] != "all" {
		t.Errorf("status %+v, %v", st, err)
	}
	var given struct{ Answer, By string }
	d.mustCall(s, "answer", map[string]any{"task": made.Task, "answer": "2"}, &given)
	if given.Answer != "all" || given.By != "token:laptop" {
		t.Errorf("answered %+v", given)
	}

	log := filepath.Join(d.parts.Config.Paths.State, "logs", made.Task+".log")
	if err := os.MkdirAll(filepath.Dir(log), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(log, []byte(strings.Repeat("earlier\n", 9000)+"\x1b[31mthe end\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var end struct {
		Log string
		Cut bool
	}
	d.mustCall(s, "log", map[string]any{"task": made.Task, "bytes": 40}, &end)
	if !strings.HasSuffix(end.Log, "the end\n") || len(end.Log) > 60 || !end.Cut || strings.Contains(end.Log, "\x1b") {
		t.Errorf("log %+v", end)
	}
	pull := tasks.Published{
		Work:        tasks.Work{Repo: "acme/api", Branch: "errand/x"},
		PullRequest: forge.PullRequestRef{Number: 7, URL: "https://github.com/acme/api/pull/7"},
	}
	d.End(c, tasks.Ending{Kind: tasks.Answered, Result: agent.Result{
		Text: strings.Repeat("forty-two ", 6000), CostUSD: 0.1,
	}, Bill: tasks.Bill{Earlier: 0.2}, Published: &pull})
	d.mustCall(s, "status", map[string]any{"task": made.Task, "wait_seconds": 50}, &st)
	if st.State != "ended" || st.Ending != "answered" || st.PullRequest != pull.PullRequest.URL || st.Cost != 0.3 ||
		!strings.HasPrefix(st.Answer, "forty-two") ||
		!strings.HasSuffix(st.Answer, "[The rest is cut off. The console has all of it.]") ||
		!strings.Contains(st.Note, "acme/api#7") {
		t.Errorf("status %+v", st)
	}

	again := made
	d.mustCall(s, "submit", map[string]any{"message": "And now?", "thread": made.Thread}, &again)
	if again.Thread != made.Thread || again.Task == made.Task {
		t.Errorf("continued as %+v, after %+v", again, made)
	}
	d.mustCall(s, "cancel", map[string]any{"task": again.Task}, &st)
	if st.Ending != "cancelled" {
		t.Errorf("cancelled: %+v", st)
	}
	entries, err := taskstest.Audited(t.Context(), d.Store)
	want := []string{
		"mcp submit: 200 " + made.Task, "mcp answer: 200 " + made.Task, "mcp submit: 200 " + again.Task,
		"mcp cancel: 200 " + again.Task,
	}
	if err != nil || len(entries) != 5 {
		t.Fatalf("audit log %q, %v", entries, err)
	}
	for i, entry := range entries[1:] { // after the creation of the token
		if !strings.HasPrefix(entry, "token:laptop") || !strings.Contains(entry, want[i]) {
			t.Errorf("audit log has %q, want %q", entry, want[i])
		}
	}
}

// A token sees and does there what it does in the API, however many use the server at once.
func TestDelegateWithScopes(t *testing.T) {
	t.Parallel()
	d := newDelegation(t)
	admin, api, web, viewer := d.connect(consoleToken), d.connect(d.token("api", "user", "acme/api")),
		d.connect(d.token("web", "user", "acme/web")), d.connect(d.token("see", "viewer"))
	var made struct{ Task string }
	d.mustCall(api, "submit", map[string]any{"message": "Go.", "repository": "acme/api"}, &made)
	for range 3 {
		for name, tc := range map[string]struct {
			s          *mcp.ClientSession
			tool, want string
			args       map[string]any
		}{
			"own":              {api, "status", "", map[string]any{"task": made.Task}},
			"another scope":    {web, "status", "The task does not exist", map[string]any{"task": made.Task}},
			"cancel elsewhere": {web, "cancel", "The task does not exist", map[string]any{"task": made.Task}},
			"log elsewhere":    {web, "log", "The task does not exist", map[string]any{"task": made.Task}},
			"answer elsewhere": {
				web, "answer", "not waiting for this answer", map[string]any{"task": made.Task, "answer": "x"},
			},
			"submit elsewhere": {
				web, "submit", "You may not start tasks in acme/api",
				map[string]any{"message": "Go.", "repository": "acme/api"},
			},
			"submit in both": {
				api, "submit", "You may not start tasks in acme/web",
				map[string]any{
					"message": "Go.", "repository": "acme/api", "further_repositories": []string{"acme/web"},
				},
			},
			"submit as a viewer": {viewer, "submit", "You may not start tasks", map[string]any{"message": "Go."}},
			"see as a viewer":    {viewer, "status", "", map[string]any{"task": made.Task}},
			"cancel as a viewer": {viewer, "cancel", "This needs the role", map[string]any{"task": made.Task}},
			"unknown repository": {
				admin, "submit", "not one errand works on", map[string]any{"message": "Go.", "repository": "acme/none"},
			},
			"no message": {
				admin, "submit", "Put the request into the field message", map[string]any{"message": " "},
			},
			"no ID":               {admin, "status", "Write at least 4 characters of the task's ID.", map[string]any{"task": "x"}},
			"no log":              {admin, "log", "has not run", map[string]any{"task": made.Task}},
			"log of less than no": {admin, "log", "at least 1", map[string]any{"task": made.Task, "bytes": -1}},
			"nothing that is unknown": {
				admin, "status", "unexpected additional properties", map[string]any{"task": made.Task, "tsak": 1},
			},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				if failed := d.call(tc.s, tc.tool, tc.args, new(state)); !strings.Contains(failed, tc.want) ||
					(failed == "") != (tc.want == "") {
					t.Errorf("%q, want %q", failed, tc.want)
				}
			})
		}
	}
}

// A call that waits does not hold up the end of its front door.
func TestDelegateWhileTheFrontDoorStops(t *testing.T) {
	t.Parallel()
	d := newDelegation(t)
	s := d.connect(consoleToken)
	var made struct{ Task string }
	d.mustCall(s, "submit", map[string]any{"message": "Go."}, &made)
	if err := d.door.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 45*time.Second) // less than it would wait
	defer cancel()
	r, err := s.CallTool(ctx, &mcp.CallToolParams{
		Name: "status", Arguments: map[string]any{"task": made.Task, "wait_seconds": 50},
	})
	if err != nil || r.IsError {
		t.Error(r, err)
	}
}

func TestDelegateNeedsAToken(t *testing.T) {
	t.Parallel()
	d := newDelegation(t)
	for _, token := range []string{"", "wrong", "errand_wrong"} {
		if resp := d.send(http.MethodPost, "/mcp", token,
			`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`); resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("with %q: %s", token, resp.Status)
		}
	}
	if resp := d.send(http.MethodGet, "/mcp", consoleToken, ""); resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET: %s", resp.Status)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.url+"/mcp", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+consoleToken)
	req.Header.Set("Origin", "https://elsewhere.test")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusForbidden {
		t.Errorf("from another site: %s", resp.Status)
	}
}
