package assemble

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/errand-fleet/errand/internal/redisserver/redistest"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/worker"
	"github.com/errand-fleet/errand/tasks/worker/attempt"
	"github.com/errand-fleet/errand/workspace"
)

// rightsWorld is a front door and a worker as separate processes, between a Slack and a GitHub. The worker's agent
// notes with which profile it runs.
type rightsWorld struct {
	*testing.T
	slack  *slackfake.Server
	github *githubfake.Server
	oauth  githubfake.OAuthApp
	base   string // of the front door
	door   *Parts
	config config.Config

	mu       sync.Mutex
	profiles map[string]agent.Profile // of runs
}

// The places of requests. The channel belongs to the private repository.
const (
	secret, public, opened = "acme/secret", "acme/site", "acme/open"
	theirs, elsewhere      = "C0SECRET", "C0ELSEWHERE"
)

// ranks are what a person may do in the private repository when they ask, and when the run begins.
var ranks = [][2]string{
	{"none", "none"},
	{"read", "read"},
	{"write", "write"},
	{"admin", "read"},
	{"write", "none"},
	{"none", "write"},
}

func newRightsWorld(t *testing.T, more ...string) *rightsWorld {
	t.Helper()
	w := &rightsWorld{T: t, slack: slackfake.New(slackfake.Config{}), profiles: map[string]agent.Profile{}}
	t.Cleanup(w.slack.Close)
	var err error
	if w.github, err = githubfake.New(githubfake.Config{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.github.Close)
	for _, name := range []string{secret, public, opened} {
		owner, short, _ := strings.Cut(name, "/")
		repo, err := w.github.CreateRepo(owner, short, map[string]string{"a.txt": "a"})
		if err != nil {
			t.Fatal(err)
		}
		repo.SetPrivate(name != public)
	}
	var people strings.Builder
	for i := range ranks {
		fmt.Fprintf(&people, "  person%d: {slack: U0P%d, github: p%d}\n", i, i, i)
	}
	server := httptest.NewUnstartedServer(nil)
	w.base = "http://" + server.Listener.Addr().String()
	file := filepath.Join(t.TempDir(), "errand.yaml")
	text := fmt.Sprintf(`
repositories: {%s: {}, %s: {}, %s: {open: true}}
channels: {%s: {repository: %s}}
login: {issuer: "%s", client_id: Iv1.errand}
roles: [{role: user, people: ["*"]}]
people:
%s%s`, secret, public, opened, theirs, secret, w.github.URL(), people.String(), strings.Join(more, "\n"))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{
		"REDIS_URL": redistest.Start(t), "ERRAND_CONFIG": file, "ERRAND_STATE_DIR": t.TempDir(),
		"ERRAND_CONSOLE_TOKEN": consoleToken, "ERRAND_PUBLIC_URL": w.base,
		"ERRAND_LOGIN_SECRET": "github-client-secret", "SLACK_API_URL": w.slack.APIURL(),
		"SLACK_BOT_TOKEN": "xoxb-test", "SLACK_SIGNING_SECRET": "slack-secret", "GITHUB_API_URL": w.github.APIURL(),
		"GITHUB_URL": w.github.URL(), "GITHUB_TOKEN": "ghp_test", "GITHUB_WEBHOOK_SECRET": "github-secret",
	}
	if w.config, err = config.Load(func(name string) string { return env[name] }, config.RoleFrontdoor); err != nil {
		t.Fatal(err)
	}
	w.door = w.parts()
	door, err := w.door.FrontDoor(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	server.Config.Handler = door
	server.Start()
	t.Cleanup(func() { server.Close(); _ = door.Close() })
	w.slack.Deliver(w.base + "/slack/events")
	w.github.Deliver(w.base + "/github/webhook")
	w.oauth = githubfake.OAuthApp{
		ClientID: "Iv1.errand", Secret: "github-client-secret", Redirect: w.base + "/login/callback",
	}
	return w
}

// parts returns those of one process: each asks GitHub for itself.
func (w *rightsWorld) parts() *Parts {
	w.Helper()
	p, err := New(w.config, Logger(w.Output(), w.config), Options{})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = p.Close() })
	return p
}

// work starts a worker.
func (w *rightsWorld) work() {
	w.Helper()
	p := w.parts()
	space, err := workspace.New(workspace.Config{
		Dir: filepath.Join(w.TempDir(), "w"), URL: p.Forge.CloneURL, Credential: p.Forge.Credential,
	})
	if err != nil {
		w.Fatal(err)
	}
	one, err := worker.New(worker.Config{
		Store: p.Store, Queue: p.Queue, Runner: noted{w}, Workspace: space, Sources: p.workerSources(), Policy: p.policy,
		Publisher: p.Forge, Slots: 4, Log: p.Log, Timing: worker.Timing{
			Outbox: 100 * time.Millisecond, Reconcile: 100 * time.Millisecond,
			Timing: attempt.Timing{Again: time.Millisecond},
		},
	})
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- one.Run(ctx) }()
	w.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			w.Error(err)
		}
	})
}

// noted is an agent that notes the profile of each run and does nothing.
type noted struct{ w *rightsWorld }

func (n noted) Run(_ context.Context, s agent.Spec, _ agent.Host) (agent.Result, error) {
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	n.w.profiles[s.ID] = s.Profile
	return agent.Result{
		Outcome: agent.Done, Text: "Done.", Session: agent.Session{
			ID: "11111111-1111-1111-1111-111111111111", Data: []byte("{}\n"),
		},
	}, nil
}

func (noted) Script(context.Context, agent.Script) (agent.Scripted, error) {
	return agent.Scripted{Outcome: agent.Done}, nil
}

func (noted) Health(context.Context) agent.Health { return agent.Health{OK: true} }

func (noted) Sweep(context.Context) error { return nil }

func (noted) Offer(context.Context, agent.Spec) (agent.Offer, error) { return agent.Offer{}, nil }

func (noted) Separated() bool { return true }

func (noted) Credentials() map[string]agent.CredentialState { return nil }

func (noted) Learn(map[string]agent.CredentialState) {}

// outcome waits for the end of a request and returns its profile, or why it was refused.
func (w *rightsWorld) outcome(t *testing.T, request string) (profile agent.Profile, why string) {
	t.Helper()
	var list desk.Listing
	await.Until(t, request, func() bool {
		var err error
		if list, err = w.door.Desk.List(t.Context(), desk.Filter{Text: request, Limit: 1}); err != nil {
			t.Fatal(err)
		}
		return len(list.Tasks) == 1
	})
	id := list.Tasks[0].Task.ID
	for _, err := range w.door.Desk.Follow(t.Context(), id, "") {
		if err != nil {
			t.Fatal(err)
		}
	}
	st, err := w.door.Desk.Status(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if st.Ending.Kind == tasks.Refused {
		return w.profiles[id], st.Ending.Reason
	}
	return w.profiles[id], ""
}

// say writes to the bot in Slack, which sends an event again that errand has not taken, up to three times.
func (w *rightsWorld) say(channel, user, text string) (ts string) {
	w.Helper()
	ts, err := w.slack.Mention(w.Context(), slackfake.Message{Channel: channel, User: user, Text: text})
	for try := 0; err != nil && try < 3; try++ {
		err = w.slack.Redeliver(w.Context(), ts, slackfake.AppMention)
	}
	if err != nil {
		w.Fatal(err)
	}
	return ts
}

// comment mentions the bot in a new issue.
func (w *rightsWorld) comment(repo, login, text string) {
	w.Helper()
	n, err := w.github.OpenIssue(w.Context(), githubfake.Issue{Repo: repo, User: "acme", Title: "An issue"})
	if err == nil {
		_, err = w.github.Comment(w.Context(), repo, n, login, "@errand "+text)
	}
	if err != nil {
		w.Fatal(err)
	}
}

// login logs a person in at the console, by GitHub.
func (w *rightsWorld) login(login string) *http.Client {
	w.Helper()
	w.github.RegisterOAuth(w.oauth, githubfake.Person{Login: login, Email: login + "@acme.test"})
	jar, err := cookiejar.New(nil)
	if err != nil {
		w.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	resp := w.request(client, http.MethodGet, "/login/start", "", "")
	if resp.StatusCode != http.StatusOK {
		w.Fatalf("log %s in: %s", login, resp.Status)
	}
	return client
}

func (w *rightsWorld) request(client *http.Client, method, path, token, body string) *http.Response {
	w.Helper()
	req, err := http.NewRequestWithContext(w.Context(), method, w.base+path, strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Origin", w.base)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := client.Do(req)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

// chat posts a request to the API. It returns false if that is refused.
func (w *rightsWorld) chat(client *http.Client, token, text string) bool {
	w.Helper()
	resp := w.request(client, http.MethodPost, "/api/chat", token,
		fmt.Sprintf(`{"message": %q, "repo": %q}`, text, secret))
	_ = resp.Body.Close() // the task goes on
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusBadRequest {
		w.Fatalf("POST /api/chat: %s", resp.Status)
	}
	return resp.StatusCode == http.StatusOK
}

// token makes an API token for a repository.
func (w *rightsWorld) token(name, repo string) string {
	w.Helper()
	resp := w.request(http.DefaultClient, http.MethodPost, "/api/tokens", consoleToken,
		fmt.Sprintf(`{"name": %q, "role": "user", "repositories": [%q], "days": 1}`, name, repo))
	var made struct {
		Token string `json:"token"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&made); err != nil || made.Token == "" {
		w.Fatalf("make a token: %s, %v", resp.Status, err)
	}
	return made.Token
}

// A request runs with what its asker may do on GitHub when the run begins, wherever they ask. No worker runs while the
// requests come in, so the second rank of a person is that after a change while they waited.
func TestRights(t *testing.T) {
	t.Parallel()
	w := newRightsWorld(t)
	refusedInChat := map[string]bool{}
	for i, rank := range ranks {
		w.github.SetPermission(secret, fmt.Sprint("p", i), rank[0])
		w.say(theirs, fmt.Sprint("U0P", i), fmt.Sprintf("slack request %d.", i))
		w.comment(secret, fmt.Sprint("p", i), fmt.Sprintf("github request %d.", i))
		name := fmt.Sprintf("chat request %d.", i)
		refusedInChat[name] = !w.chat(w.login(fmt.Sprint("p", i)), "", name)
	}
	// These ask elsewhere, or have no known account on GitHub.
	w.say(elsewhere, "U0P2", "[repo="+secret+"] private elsewhere.")
	w.say(theirs, "U0NEW", "unmapped private.")
	w.say(elsewhere, "U0NEW", "[repo="+opened+"] unmapped open.")
	w.chat(http.DefaultClient, w.token("ci", secret), "token request.")
	if w.chat(http.DefaultClient, w.token("other", public), "token elsewhere.") {
		t.Error("a token is good for another repository")
	}
	revoked := w.say(theirs, "U0P4", "revoked meanwhile.")
	for i, rank := range ranks {
		w.github.SetPermission(secret, fmt.Sprint("p", i), rank[1])
	}
	w.work()

	type want struct {
		profile agent.Profile
		why     string // a part of it
	}
	cells := map[string]want{
		"private elsewhere.": {"", secret + " is private, and its answers may not be posted in this channel."},
		"unmapped private.":  {"", "I do not know your account on GitHub"},
		"unmapped open.":     {agent.Read, ""}, "token request.": {agent.Write, ""},
		"revoked meanwhile.": {"", "p4 has no access to " + secret + "."},
	}
	for i, rank := range ranks {
		cell := map[string]want{
			"none": {"", fmt.Sprintf("p%d has no access to %s.", i, secret)}, "read": {agent.Read, ""},
			"write": {agent.Write, ""}, "admin": {agent.Write, ""},
		}[rank[1]]
		cells[fmt.Sprintf("slack request %d.", i)], cells[fmt.Sprintf("chat request %d.", i)] = cell, cell
		if cell.profile != agent.Write { // people need write access to ask for anything there
			cell = want{"", fmt.Sprintf("p%d has no write access to %s.", i, secret)}
		}
		cells[fmt.Sprintf("github request %d.", i)] = cell
	}
	t.Run("cells", func(t *testing.T) {
		for request, want := range cells {
			t.Run(request, func(t *testing.T) {
				t.Parallel()
				if strings.HasPrefix(request, "chat") && refusedInChat[request] {
					if !strings.HasSuffix(request, " 0.") && !strings.HasSuffix(request, " 5.") {
						t.Error("refused on arrival")
					}
					return
				}
				profile, why := w.outcome(t, request)
				if profile != want.profile || (why == "") != (want.why == "") || !strings.Contains(why, want.why) {
					t.Errorf("profile %q, refused %q, want %+v", profile, why, want)
				}
			})
		}
	})
	if !refusedInChat["chat request 0."] || !refusedInChat["chat request 5."] {
		t.Error("the console takes requests of people without access")
	}
	if err := w.slack.Wait(t.Context(), func(s *slackfake.Server) bool {
		for _, m := range s.Messages(theirs, revoked) {
			if m.BotID != "" && strings.Contains(m.Text+string(m.Blocks), "p4 has no access to "+secret+".") {
				return true
			}
		}
		return false
	}); err != nil {
		t.Errorf("the thread does not say why: %v", err)
	}
}

// The metrics are those of all repositories, so an operator of some does not get them.
func TestMetricsAreForTheWholeFleet(t *testing.T) {
	t.Parallel()
	w := newRightsWorld(t)
	for name, c := range map[string]struct {
		repositories string
		want         int
	}{"all": {"[]", http.StatusOK}, "one": {`["` + secret + `"]`, http.StatusForbidden}} {
		resp := w.request(http.DefaultClient, http.MethodPost, "/api/tokens", consoleToken,
			fmt.Sprintf(`{"name": %q, "role": "operator", "repositories": %s, "days": 1}`, name, c.repositories))
		var made struct {
			Token string `json:"token"`
		}
		if err := json.NewDecoder(resp.Body).Decode(&made); err != nil || made.Token == "" {
			t.Fatalf("make a token: %s, %v", resp.Status, err)
		}
		if got := w.request(http.DefaultClient, http.MethodGet, "/metrics", made.Token, ""); got.StatusCode != c.want {
			t.Errorf("an operator of %s: %s", name, got.Status)
		}
	}
}

// The doctor names the entries of errand.yaml that GitHub does not know.
func TestUnknownRepositories(t *testing.T) {
	t.Parallel()
	w := newRightsWorld(t)
	unknown := func() (found []store.Finding) {
		for _, f := range w.door.examine(t.Context()) {
			if strings.Contains(f.What, "does not know repositories") {
				found = append(found, f)
			}
		}
		return found
	}
	if found := unknown(); len(found) != 0 {
		t.Errorf("without unknown ones: %+v", found)
	}
	w.door.policy.Listed = append(w.door.policy.Listed, "acme/gone", "acme/renamed")
	found := unknown()
	if len(found) != 1 || !strings.HasSuffix(found[0].What, "errand.yaml: acme/gone, acme/renamed") ||
		found[0].Why == "" || found[0].Remedy == "" {
		t.Errorf("findings: %+v", found)
	}
	w.door.policy.Listed = []string{"acme/former"}
	w.github.Fail("GET /repos/{o}/{r}", githubfake.Failure{
		Status: http.StatusMovedPermanently, Header: http.Header{"Location": {"../" + public}},
	})
	if found := unknown(); len(found) != 1 || !strings.HasSuffix(found[0].What, ": acme/former (now "+public+")") {
		t.Errorf("findings about a renamed one: %+v", found)
	}
}
