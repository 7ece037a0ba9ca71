package web

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/internal/fake/oidcfake"
	"github.com/errand-fleet/errand/internal/testlog"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/tasks/queue"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/web/api"
	"github.com/errand-fleet/errand/web/auth"
)

// apiToken creates an API token.
func (h *harness) apiToken(name, role string, repositories ...string) string {
	h.Helper()
	var made api.NewToken
	h.into(h.do("POST", "/api/tokens", h.json(map[string]any{
		"name": name, "role": role, "repositories": repositories, "days": 30,
	})), http.StatusCreated, &made)
	return made.Secret
}

func (h *harness) json(v any) string {
	h.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		h.Fatal(err)
	}
	return string(b)
}

// routeTable returns the role that each route needs, from the table of docs/access.md. A new route needs a place
// there.
func routeTable(t *testing.T) map[string]policy.Role {
	t.Helper()
	text, err := os.ReadFile("../docs/access.md")
	if err != nil {
		t.Fatal(err)
	}
	needs := map[string]policy.Role{"/slackery/x": policy.Viewer} // of the test
	for role := policy.Anyone; role <= policy.Admin; role++ {
		row := regexp.MustCompile(`(?m)^\| ` + role.String() + ` \|[^|]*\|(.*)\|$`).FindSubmatch(text)
		if row == nil {
			t.Fatalf("docs/access.md has no row for %s", role)
		}
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllSubmatch(row[1], -1) {
			needs[string(m[1])] = role
		}
	}
	return needs
}

var linkKey = []byte("a key of the fleet")

func withLinks(c *Config) { c.TaskLinks = &auth.Links{Key: linkKey, Days: 7} }

// link returns a signed link as a path.
func (h *harness) link(id string, days int) string {
	return (&auth.Links{Key: linkKey, Days: days}).URL("https://errand.test", id)[len("https://errand.test"):]
}

// Every route is called with every role, with a signed link, with that of another task, for another site and without
// anything, and the answers are those of the table.
func TestEveryRouteWithEveryRole(t *testing.T) {
	t.Parallel()
	h := newHarness(t, withRoutes, withLinks, func(c *Config) {
		c.now = func() time.Time { return tasks.Born("1700000000000001-x") }
	})
	needs := routeTable(t)
	if diff := cmp.Diff(needs, h.handler.out.Roles()); diff != "" {
		t.Fatalf("routes (-needs +declared):\n%s", diff)
	}
	h.Tell(func(string) string { return `{"offer": {}}` })
	mine := h.submit(1, func(t *tasks.Task) {
		t.ID, t.Source, t.Actor = "1700000000000001-chat-x", "chat", "token:user"
	})
	roles := []policy.Role{policy.Anyone, policy.Guest, policy.Viewer, policy.User, policy.Operator, policy.Admin}
	keys := map[policy.Role][]string{
		policy.Anyone: {"Authorization", ""},
		policy.Guest:  {"Authorization", "", "Cookie", "errand_link=" + strings.Split(h.link(mine, 7), "link=")[1]},
	}
	for _, role := range roles[policy.Viewer:] {
		keys[role] = []string{"Authorization", "Bearer " + h.apiToken(role.String(), role.String())}
	}
	other := "errand_link=" + strings.Split(h.link(h.submit(2), 7), "link=")[1]
	session := auth.CookieName + "=" + h.cookieValue()
	// An event stream ends with its task.
	claim := h.Claim(mine)
	h.End(claim, tasks.Ending{Kind: tasks.Answered, Result: agent.Result{Text: "Done"}, At: time.Now()})
	for _, pattern := range slices.Sorted(maps.Keys(needs)) {
		method, path, found := strings.Cut(pattern, " ")
		if !found {
			method, path = "GET", pattern
		}
		path = strings.NewReplacer("{$}", "", "{id}", mine, "{thread}", "none", "{name}", "none").Replace(path)
		for _, role := range roles {
			a := h.do(method, path, "", keys[role]...)
			want := 0
			switch need := needs[pattern]; {
			case role >= need:
			case role <= policy.Guest:
				want = http.StatusUnauthorized
			default:
				want = http.StatusForbidden
			}
			refused := a.StatusCode == http.StatusUnauthorized || a.StatusCode == http.StatusForbidden
			if pattern == "POST /login" || pattern == "GET /login" || pattern == "POST /link" {
				refused = refused && want != 0 // they ask for the token
			}
			if want != 0 && a.StatusCode != want || want == 0 && refused {
				t.Errorf("%s as %s: %s, want %d: %.200s", pattern, role, a.Status, want, a.text)
			}
		}
		if needs[pattern] == policy.Anyone {
			continue
		}
		if a := h.do(method, path, "", "Authorization", "", "Cookie", other); a.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s with a link to another task: %s", pattern, a.Status)
		}
		if method != "GET" {
			h.problem(h.do(method, path, "", "Authorization", "", "Cookie", session, "Origin",
				"https://elsewhere.test"), http.StatusForbidden)
			h.problem(h.do(method, path, "", "Authorization", "", "Cookie", session, "Sec-Fetch-Site", "cross-site"),
				http.StatusForbidden)
		}
	}
}

// A route that nobody gave a role is closed, even to admins.
func TestRouteWithoutARoleIsClosed(t *testing.T) {
	t.Parallel()
	h := newHarness(t, withRoutes, func(c *Config) { delete(c.Roles, "/metrics") })
	h.problem(h.get("/metrics"), http.StatusForbidden)
}

// inRepo submits a task of a repository.
func (h *harness) inRepo(n int, repo string) string {
	return h.submit(n, func(t *tasks.Task) { t.Repo, t.Thread = repo, "chat/"+strings.ReplaceAll(repo, "/", "-") })
}

// A role that is limited to repositories shows nothing of others, by any route.
func TestRolesOfRepositories(t *testing.T) {
	t.Parallel()
	h := newHarness(t, withRoutes, func(c *Config) {
		c.Examine = func(context.Context) []store.Finding {
			return []store.Finding{{What: "results of other/app go to C1"}}
		}
	})
	ours, theirs, none := h.inRepo(1, "acme/app"), h.inRepo(2, "other/app"), h.submit(3)
	for _, id := range []string{ours, theirs, none} {
		claim := h.Claim(id)
		if _, err := claim.Spend(t.Context(), store.Expense{USD: 1, Model: "m"}); err != nil {
			t.Fatal(err)
		}
		h.End(claim, tasks.Ending{Kind: tasks.Answered, Result: agent.Result{Text: "Done"}, At: time.Now()})
		h.log(id+".log", "the log")
	}
	key := []string{"Authorization", "Bearer " + h.apiToken("ops", "operator", "acme/*")}
	for pattern := range routeTable(t) {
		method, path, _ := strings.Cut(pattern, " ")
		if !strings.Contains(path, "/tasks/{id}") || strings.HasPrefix(path, "/queues") {
			continue
		}
		for _, id := range []string{theirs, none} {
			body := ""
			if method == "POST" && strings.HasPrefix(path, "/api/") {
				body = `{"answer": "x"}`
			}
			a := h.do(method, strings.Replace(path, "{id}", id, 1), body, key...)
			if a.StatusCode != http.StatusNotFound &&
				(a.StatusCode != http.StatusUnprocessableEntity || path != "/tasks/{id}/answer") {
				t.Errorf("%s of %s: %s", pattern, id, a.Status)
			}
		}
		changes := strings.HasSuffix(path, "diff") || strings.HasSuffix(path, "changes") || strings.HasSuffix(path, "{name}") // none
		if method == "GET" && !changes {
			if a := h.get(strings.Replace(path, "{id}", ours, 1), key...); a.StatusCode != http.StatusOK {
				t.Errorf("%s of ours: %s %s", pattern, a.Status, a.text)
			}
		}
	}
	for _, path := range []string{
		"/api/tasks", "/", "/api/costs?by=repository", "/costs?by=repository", "/chat/other-app", "/fleet?services=1",
	} {
		if a := h.get(path, append(key, "Accept", "text/html")...); strings.Contains(a.text, theirs) ||
			strings.Contains(a.text, "other/app") || strings.Contains(a.text, "$2") {
			t.Errorf("%s shows %s", path, a.text)
		}
	}
	if a := h.get("/api/costs?by=repository", key...); !strings.Contains(a.text, `"cost_usd": 1,`) ||
		strings.Contains(a.text, `"cost_usd": 2`) {
		t.Errorf("costs: %s", a.text)
	}
	h.problem(h.get("/api/agents?repo=other/app", key...), http.StatusBadRequest)
	h.problem(h.get("/api/health/services", key...), http.StatusForbidden)
	all := []string{"Authorization", "Bearer " + h.apiToken("all", "viewer")}
	for _, path := range []string{"/api/health/services", "/fleet?services=1"} {
		h.contains(h.get(path, all...), http.StatusOK, "other/app")
	}
	h.problem(h.get("/queues/", key...), http.StatusForbidden)
	h.problem(h.get("/api/audit", key...), http.StatusForbidden)
}

// A user stops their own tasks, also those that they asked for in Slack, and no others.
func TestUsersStopTheirOwn(t *testing.T) {
	t.Parallel()
	h := newHarness(t, withProxy, func(c *Config) {
		people := people.People{{Name: "Ann", Slack: "U1", Email: "ann@acme.test"}}
		c.Desk = desk.New(c.Store, queue.New(c.Store, nil, time.Hour), rights.Policy{People: people}, nil)
		c.Access = &auth.Access{People: people, Grants: []auth.Grant{{
			Role: policy.User, People: []string{"*@acme.test"},
		}}}
	})
	as := func(who, id string) int {
		return h.through("192.0.2.7:1234", "198.51.100.1:8080", "POST", "/api/tasks/"+id+"/cancel", "X-Forwarded-User", who).Code
	}
	slack := h.submit(1, func(t *tasks.Task) {
		t.ID, t.Source, t.Actor, t.Thread = "1700000000000001-slack-x", "slack", "U1", "slack/t/c/1"
	})
	for who, want := range map[string]int{"bob@acme.test": 403, "ann@other.test": 403} {
		if got := as(who, slack); got != want {
			t.Errorf("%s stops it: %d", who, got)
		}
	}
	if got := as("ann@acme.test", slack); got != http.StatusAccepted {
		t.Errorf("Ann stops it: %d", got)
	}
}

// People who cannot see a repository at the forge do not see its tasks. The forge is asked once for some minutes.
func TestForgeDecidesWhoSees(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	down := false
	h := newHarness(t, withProxy, func(c *Config) {
		c.Proxy.Groups = "X-Forwarded-Groups"
		c.Access = &auth.Access{
			People: people.People{{Name: "Ann", GitHub: "ann-acme", Email: "ann@acme.test"}},
			Grants: []auth.Grant{{Role: policy.Operator, Groups: []string{"platform"}}},
			Forge: func(_ context.Context, repo, login string) (bool, error) {
				asked.Add(1)
				if down {
					return true, fmt.Errorf("no answer")
				}
				return repo == "acme/app" && login == "ann-acme", nil
			},
		}
	})
	ours, theirs := h.inRepo(1, "acme/app"), h.inRepo(2, "other/app")
	get := func(id string, hs ...string) int {
		return h.through("192.0.2.7:1234", "198.51.100.1:8080", "GET", "/api/tasks/"+id, append(hs, "X-Forwarded-User", "ann@acme.test")...).Code
	}
	platform := []string{"X-Forwarded-Groups", "staff, platform"}
	for range 3 {
		if a, b := get(ours, platform...), get(theirs, platform...); a != 200 || b != 404 {
			t.Errorf("ours %d, theirs %d", a, b)
		}
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("the forge was asked %d times", n)
	}
	if got := get(ours, "X-Forwarded-Groups", "staff"); got != http.StatusForbidden {
		t.Errorf("without a role: %d", got)
	}
	down = true
	if got := get(h.inRepo(3, "third/app"), platform...); got != http.StatusNotFound {
		t.Errorf("the forge is down: %d", got)
	}
}

// A signed link opens one task read-only, from an address without the signature, until its time is over.
func TestSignedLink(t *testing.T) {
	t.Parallel()
	var now atomic.Int64
	now.Store(1_700_000_000)
	h := newHarness(t, withLinks, func(c *Config) { c.now = func() time.Time { return time.Unix(now.Load(), 0) } })
	id, other := h.submit(1), h.submit(2)
	h.log(id+".log", "the readable log")
	link := h.link(id, 7)
	a := h.get(link, browser...)
	h.contains(a, http.StatusOK, `href="/tasks/`+id+`"`)
	if a.Header.Get("Refresh") != "0; url=/tasks/"+id || a.Header.Get("Referrer-Policy") != "no-referrer" ||
		strings.Contains(a.text, "link=") {
		t.Errorf("%v %s", a.Header, a.text)
	}
	var cookie string
	for _, c := range a.Cookies() {
		if c.Path != "/tasks/"+id && c.Path != "/api/tasks/"+id || !c.HttpOnly ||
			c.SameSite != http.SameSiteStrictMode || c.MaxAge > 7*86400 {
			t.Errorf("cookie %+v", c)
		}
		cookie = c.Name + "=" + c.Value
	}
	guest := append([]string{"Cookie", cookie}, browser...)
	h.contains(h.get("/tasks/"+id, guest...), http.StatusOK, "Do it", `!action="/tasks/`, "!Raw log", "!>Queue<")
	for _, path := range []string{"/api/tasks/" + id, "/tasks/" + id + "/log"} {
		if a := h.get(path, guest...); a.StatusCode != http.StatusOK {
			t.Errorf("%s: %s %s", path, a.Status, a.text)
		}
	}
	guest = []string{"Authorization", "", "Cookie", cookie}
	h.problem(h.get("/api/tasks/"+id+"/log?raw=1", guest...), http.StatusForbidden)
	for _, path := range []string{"/", "/api/tasks", "/api/tasks/" + other, "/tasks/" + other, "/chat", "/audit"} {
		h.problem(h.get(path, guest...), http.StatusUnauthorized)
	}
	for _, path := range []string{
		"/api/tasks/" + id + "/cancel", "/api/tasks/" + id + "/answer", "/api/tasks/" + id + "/retry",
		"/tasks/" + id + "/cancel", "/api/tokens",
	} {
		h.problem(h.do("POST", path, "", guest...), http.StatusUnauthorized)
	}
	claim := h.Claim(id)
	// ends the stream
	h.End(claim, tasks.Ending{Kind: tasks.Answered, Result: agent.Result{Text: "The answer"}, At: time.Now()})
	h.contains(h.get("/api/tasks/"+id+"/events", guest...), http.StatusOK, "event: ")
	h.problem(h.get("/api/tasks/"+other+"/events", guest...), http.StatusUnauthorized)

	for name, bad := range map[string]string{
		"of another task": strings.Replace(link, id, other, 1), "changed": link[:len(link)-1] + "!",
		"later": strings.Replace(link, "link=17", "link=18", 1), "empty": "/tasks/" + id + "?link=",
	} {
		if a := h.get(bad, browser...); len(a.Cookies()) > 0 || strings.Contains(a.Header.Get("Refresh"), "link") {
			t.Errorf("%s: %v", name, a.Header)
		}
	}
	now.Add(8 * 86400)
	h.problem(h.get("/api/tasks/"+id, guest...), http.StatusUnauthorized)
	if a := h.get(link, browser...); len(a.Cookies()) > 0 {
		t.Error("it opens after its time")
	}
	// A link ends with the days that are set now, even if it was made for more, and with its own if it was made for
	// less.
	for days, want := range map[int]bool{30: false, 3: false} {
		made := h.link(id, days)
		for _, at := range []struct {
			day   int64
			opens bool
		}{{2, true}, {4, days > 4}, {8, want}} {
			now.Store(1_700_000_000 + at.day*86400)
			if a := h.get(made, browser...); (len(a.Cookies()) > 0) != at.opens {
				t.Errorf("a link for %d days on day %d: %v", days, at.day, a.Cookies())
			}
		}
	}
	closed := newHarness(t) // people can log in, or links are switched off
	if a := closed.get(link, browser...); len(a.Cookies()) > 0 {
		t.Error("it opens where links are switched off")
	}
}

// A login gives the browser a new session, and a log-out or a new console token ends it everywhere.
func TestSessions(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	first := h.cookieValue()
	second := ""
	for _, c := range h.login(url.Values{"token": {token}}, "Cookie", auth.CookieName+"="+first).Cookies() {
		second = c.Value
	}
	status := func(to *Handler, value string) int {
		req := h.request("GET", "/api/tasks", "", header{"Authorization", "", "Cookie", auth.CookieName + "=" + value})
		w := httptest.NewRecorder()
		to.ServeHTTP(w, req)
		return w.Code
	}
	if a, b := status(h.handler, first), status(h.handler, second); a != 401 || b != 200 || first == second {
		t.Errorf("the old session %d, the new one %d", a, b)
	}
	door, err := New(h.config) // another front door
	if err != nil {
		t.Fatal(err)
	}
	defer door.Close()
	cfg := h.config
	cfg.Token = "another-token"
	changed, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer changed.Close()
	if a, b := status(door, second), status(changed, second); a != 200 || b != 401 {
		t.Errorf("at another front door %d, with another token %d", a, b)
	}
	out := h.do("POST", "/logout", "", append([]string{"Cookie", auth.CookieName + "=" + second}, browser...)...)
	h.redirects(out, "/login")
	if got := status(door, second); got != 401 {
		t.Errorf("after the log-out: %d", got)
	}
	if ttl := h.redis.Keys(t.Context(), "errand:login:*").Val(); len(ttl) != 0 {
		t.Errorf("sessions are left: %v", ttl)
	}
}

func TestTokensExpireAndAreRevoked(t *testing.T) {
	t.Parallel()
	var now atomic.Int64
	now.Store(time.Now().Unix())
	h := newHarness(t, func(c *Config) { c.now = func() time.Time { return time.Unix(now.Load(), 0) } })
	ci, bot := h.apiToken("ci", "viewer"), h.apiToken("bot", "admin")
	with := func(secret string) int { return h.get("/api/tasks", "Authorization", "Bearer "+secret).StatusCode }
	if with(ci) != 200 || with(ci+"x") != 401 || with("errand_x") != 401 || !strings.HasPrefix(ci, "errand_") ||
		len(ci) != len("errand_")+43 {
		t.Errorf("%d %s", with(ci), ci)
	}
	for body, want := range map[string]string{
		`{"name": "ci", "role": "viewer", "days": 1}`: "already",
		`{"name": "Ci", "role": "viewer", "days": 1}`: "at most 40", `{"name": "x", "days": 1}`: "needs a role",
		`{"name": "x", "role": "viewer"}`:                                    "1 to 366",
		`{"name": "x", "role": "admin", "repositories": ["a/b"], "days": 1}`: "cannot be limited",
		`{"name": "x", "role": "user", "repositories": ["["], "days": 1}`:    "not a pattern",
	} {
		if got := h.problem(h.do("POST", "/api/tokens", body),
			http.StatusUnprocessableEntity); !strings.Contains(got, want) {
			t.Errorf("%s: %s", body, got)
		}
	}
	h.problem(h.do("POST", "/api/tokens", `{"name": "x", "role": "guest", "days": 1}`), http.StatusBadRequest)
	misspelled := h.do("POST", "/api/tokens", `{"name": "x", "role": "user", "repos": ["acme/api"], "days": 1}`)
	if why := h.problem(misspelled, http.StatusBadRequest); !strings.Contains(why, `"repos"`) {
		t.Errorf("a misspelled field: %q", why)
	}
	if a := h.do("DELETE", "/api/tokens/ci", ""); a.StatusCode != http.StatusNoContent || with(ci) != 401 ||
		with(bot) != 200 {
		t.Errorf("revoke: %s, then %d and %d", a.Status, with(ci), with(bot))
	}
	h.problem(h.do("DELETE", "/api/tokens/ci", ""), http.StatusNotFound)
	now.Add(31 * 86400)
	if with(bot) != 401 {
		t.Error("an expired token opens")
	}
}

// The number of tokens is bounded.
func TestManyTokens(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	const most = 500
	for n := range most - 1 {
		body := []byte(h.json(auth.Token{Name: fmt.Sprint("t-", n), Role: policy.Viewer}))
		if err := h.Store.Tokens.Save(t.Context(), fmt.Sprint(n), body); err != nil {
			t.Fatal(err)
		}
	}
	h.apiToken("last", "viewer")
	if why := h.problem(h.do("POST", "/api/tokens", `{"name": "x", "role": "viewer", "days": 1}`),
		http.StatusUnprocessableEntity); !strings.Contains(why, "There are 500 tokens") {
		t.Errorf("one more: %s", why)
	}
}

// Only admins create tokens, and not with a token, whose end the new one could outlive. A token is shown once: what is
// stored, listed and recorded does not give it away. Another site cannot create one through an admin's browser.
func TestTokensGiveNoMoreThanTheirCreatorHas(t *testing.T) {
	t.Parallel()
	h, fake := withOpenID(t, func(c *Config) {
		c.Access = &auth.Access{Grants: []auth.Grant{
			{Role: policy.Admin, Groups: []string{"platform"}}, {Role: policy.Operator, Groups: []string{"ops"}},
		}}
	})
	const body = `{"name": "new", "role": "viewer", "days": 1}`
	for _, role := range []string{"admin", "operator", "user", "viewer"} {
		key := []string{"Authorization", "Bearer " + h.apiToken(role, role)}
		h.problem(h.do("POST", "/api/tokens", body, key...), http.StatusForbidden)
	}
	as := func(group string) []string {
		fake.LogIn(oidcfake.Claims{"sub": group, "groups": group}, nil)
		p := h.person()
		p.visit(p.callback("/"))
		return []string{"Authorization", "", "Cookie", auth.CookieName + "=" + p.session()}
	}
	h.problem(h.do("POST", "/api/tokens", body, as("ops")...), http.StatusForbidden)
	admin := as("platform")
	for _, hs := range [][]string{{"Origin", "https://elsewhere.test"}, {
		"Sec-Fetch-Site", "cross-site", "Content-Type", "text/plain",
	}, {"Sec-Fetch-Site", "same-site"}} {
		h.problem(h.do("POST", "/api/tokens", body, append(hs, admin...)...), http.StatusForbidden)
		h.problem(h.do("DELETE", "/api/tokens/admin", "", append(hs, admin...)...), http.StatusForbidden)
	}
	var made api.NewToken
	a := h.do("POST", "/api/tokens", body, admin...)
	h.into(a, http.StatusCreated, &made)
	if made.By != "127.0.0.1/platform" || made.Expires.Sub(made.Created) != 24*time.Hour ||
		strings.Contains(fmt.Sprint(a.Header), made.Secret) {
		t.Errorf("%+v %v", made, a.Header)
	}
	again := h.get("/api/tokens", admin...).text + h.get("/api/audit", admin...).text + h.dump()
	if !strings.Contains(again, `"new"`) || strings.Contains(again, made.Secret) ||
		strings.Contains(again, strings.TrimPrefix(made.Secret, "errand_")) {
		t.Errorf("it is shown again: %s", again)
	}
	if sum := fmt.Sprintf("%x", sha256.Sum256([]byte(made.Secret))); !strings.Contains(h.dump(), sum) {
		t.Error("its hash is not in Redis")
	}
	// The hash is not the token, and a token is no cookie and no login.
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte(made.Secret)))
	for _, hs := range [][]string{
		{"Authorization", "Bearer errand_" + sum},
		{"Authorization", "Bearer " + sum},
		{"Authorization", "Basic " + made.Secret},
		{"Authorization", "", "Cookie", auth.CookieName + "=" + made.Secret},
	} {
		said, sent := h.problem(h.get("/api/tasks", hs...),
			http.StatusUnauthorized), strings.HasPrefix(hs[1], "Bearer ")
		if strings.HasPrefix(said, "The token is wrong, has expired or was revoked.") != sent {
			t.Errorf("%v: %s", hs, said)
		}
	}
	h.contains(h.login(url.Values{"token": {made.Secret}}), http.StatusUnauthorized, "This token is wrong.")
	h.problem(h.get("/api/tasks?token="+made.Secret, "Authorization", ""), http.StatusUnauthorized)
}

// What people and programs change is in the audit log, with who did it and what came of it, and no secret is in Redis,
// the log or an address.
func TestAuditAndSecrets(t *testing.T) {
	t.Parallel()
	var log testlog.Log
	h := newHarness(t, withLinks, withRoutes, func(c *Config) {
		c.Log = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		c.now = func() time.Time { return tasks.Born("1700000000000001-x") }
	})
	id := h.submit(1)
	session := h.cookieValue()
	cookie := append([]string{"Cookie", auth.CookieName + "=" + session}, browser...)
	link := h.link(id, 7)
	h.get(link, browser...)
	h.get("/", cookie...)
	h.get("/", browser...)
	viewer := h.apiToken("see", "viewer")
	h.do("POST", "/api/tasks/"+id+"/cancel", "", "Authorization", "Bearer "+viewer)
	h.do("POST", "/tasks/"+id+"/cancel", "", cookie...)
	h.do("POST", "/api/tasks/"+id+"/retry", "")
	h.do("DELETE", "/api/tokens/see", "")
	h.do("POST", "/format", "", cookie...)
	h.login(url.Values{"token": {"wrong-secret"}})
	h.do("POST", "/logout", "", cookie...)

	var page api.AuditPage
	h.into(h.get("/api/audit"), http.StatusOK, &page)
	var got []string
	for _, e := range slices.Backward(page.Entries) {
		if e.From != "127.0.0.1" || e.Time.IsZero() || len(e.Hash) != 64 {
			t.Errorf("entry %+v", e)
		}
		got = append(got, fmt.Sprintf("%d %s by %s as %s: %s %d %s", e.Seq, e.Who, e.How, e.Role,
			strings.ReplaceAll(e.What, id, "ID"), e.Status, strings.ReplaceAll(e.Result, id, "ID")))
	}
	want := []string{
		"1 console by token as admin: login 200 ",
		"2 console by token as admin: POST /api/tokens 201 /api/tokens/see",
		"3 token:see by api token as viewer: POST /api/tasks/ID/cancel 403 ",
		"4 console by token as admin: POST /tasks/ID/cancel 303 /tasks/ID",
		"5 console by token as admin: POST /api/tasks/ID/retry 202 ",
		"6 console by token as admin: DELETE /api/tokens/see 204 ",
		"7 console by token as admin: logout 200 ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("audit log (-want +got):\n%s", diff)
	}
	var verified api.Verified
	h.into(h.get("/api/audit/verify"), http.StatusOK, &verified)
	if verified.Entries != len(want) || verified.Problem != "" {
		t.Errorf("%+v", verified)
	}
	h.contains(h.get("/audit", "Accept", "text/html"), http.StatusOK, "token:see",
		"POST /tasks/"+id+"/cancel", "127.0.0.1")
	h.contains(h.get("/audit?who=TOKEN%3Asee&verify=1", "Accept", "text/html"), http.StatusOK,
		"The chain of 7 entries is intact.", "refused", "/cancel", "!/retry", `value="TOKEN:see"`)
	h.contains(h.get("/audit?what=nothing", "Accept", "text/html"), http.StatusOK, "No entry matches.", "!intact")
	h.problem(h.get("/audit?since=yesterday"), http.StatusBadRequest)
	by := desk.Sender{Source: "slack", Account: "U0ANN", Name: func(context.Context) string { return "Ann <b>" }}
	if err := h.Desk.As(t.Context(), by, "vote", id, func(context.Context) (bool, error) {
		return true, nil
	}); err != nil {
		t.Fatal(err)
	}
	h.contains(h.get("/audit?from=slack", "Accept", "text/html"), http.StatusOK, "Ann &lt;b&gt;", "slack/U0ANN",
		`<option selected>slack</option>`, "rated <a href=\"/tasks/"+id+`">task `+display.TaskID(id)+"</a>", "!POST ")
	h.contains(h.get("/audit?from=console&who=ann", "Accept", "text/html"), http.StatusOK, "No entry matches.")
	h.problem(h.get("/audit?from=mail"), http.StatusBadRequest)
	for _, e := range page.Entries {
		if !strings.Contains(log.String(), `"hash":"`+e.Hash+`"`) {
			t.Errorf("entry %d is not in the log", e.Seq)
		}
	}
	everything := log.String() + h.dump()
	for what, hidden := range map[string]string{
		"console token": token, "session": session, "API token": viewer,
		"signature": strings.Split(link, "link=")[1][11:], "wrong token": "wrong-secret",
	} {
		if strings.Contains(everything, hidden) {
			t.Errorf("the %s is in Redis or the log", what)
		}
	}
	h.redis.LSet(t.Context(), "errand:audit", 3, "x")
	h.into(h.get("/api/audit/verify"), http.StatusOK, &verified)
	if !strings.Contains(verified.Problem, "entry 4") {
		t.Errorf("after a change: %+v", verified)
	}
	h.contains(h.get("/audit?verify=1", "Accept", "text/html"), http.StatusOK, "The chain is broken: audit entry 4",
		"This entry cannot be read", "unreadable")
}

// dump returns everything in Redis as text.
func (h *harness) dump() string {
	h.Helper()
	var all strings.Builder
	for _, key := range h.redis.Keys(h.Context(), "*").Val() {
		all.WriteString(key + "\n")
		switch ctx := h.Context(); h.redis.Type(ctx, key).Val() {
		case "string":
			all.WriteString(h.redis.Get(ctx, key).Val())
		case "hash":
			fmt.Fprint(&all, h.redis.HGetAll(ctx, key).Val())
		case "list":
			fmt.Fprint(&all, h.redis.LRange(ctx, key, 0, -1).Val())
		case "set":
			fmt.Fprint(&all, h.redis.SMembers(ctx, key).Val())
		case "zset":
			fmt.Fprint(&all, h.redis.ZRange(ctx, key, 0, -1).Val())
		case "stream":
			fmt.Fprint(&all, h.redis.XRange(ctx, key, "-", "+").Val())
		}
	}
	return all.String()
}

// The address behind a proxy is the one that the proxy saw, and a stranger cannot choose it.
func TestAuditNamesTheAddress(t *testing.T) {
	t.Parallel()
	h := newHarness(t, withProxy)
	id := h.submit(1)
	h.through("192.0.2.7:1234", "198.51.100.1:8080", "POST", "/api/tasks/"+id+"/cancel", "X-Forwarded-User",
		"ann@acme.test", "X-Forwarded-For", "6.6.6.6, 203.0.113.9")
	h.do("POST", "/api/tasks/"+id+"/cancel", "", "X-Forwarded-For", "6.6.6.6")
	var page api.AuditPage
	h.into(h.get("/api/audit"), http.StatusOK, &page)
	if len(page.Entries) != 2 || page.Entries[1].From != "203.0.113.9" || page.Entries[1].Who != "ann@acme.test" ||
		netip.MustParseAddr(page.Entries[0].From) != netip.MustParseAddr("127.0.0.1") {
		t.Errorf("%+v", page.Entries)
	}
}

// The header shows who is there, and links to what their role permits.
func TestHeader(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for role, want := range map[string][]string{
		"viewer": {
			"token:viewer", "Role: viewer, logged in by api token", `href="/costs"`, `!href="/chat"`,
			`!href="/queues/"`, `!href="/audit"`, "!/logout",
		},
		"user":     {`href="/chat"`, `!href="/queues/"`},
		"operator": {`href="/queues/"`, `!href="/audit"`},
		"admin":    {`href="/audit"`},
	} {
		h.contains(h.get("/fleet", "Authorization", "Bearer "+h.apiToken(role, role), "Accept", "text/html"),
			http.StatusOK, want...)
	}
	limited := h.apiToken("limited", "operator", "acme/*")
	h.contains(h.get("/fleet", "Authorization", "Bearer "+limited, "Accept", "text/html"), http.StatusOK,
		`href="/chat"`, `!href="/queues/"`)
	h.contains(h.get("/nowhere", h.cookie()...), http.StatusNotFound, "There is no such page.", "Role: admin",
		`action="/logout"`, `href="/">Back to the tasks`)
	id := h.submit(1)
	for _, page := range []string{"log", "changes"} { // it has neither
		h.contains(h.get("/tasks/"+id+"/"+page, h.cookie()...), http.StatusNotFound,
			`href="/tasks/`+id+`">Back to the task`)
	}
	h.contains(h.get("/tasks/1700000000000009-chat-x/log", h.cookie()...), http.StatusNotFound,
		`href="/">Back to the tasks`)
	h.contains(h.get("/login", browser...), http.StatusOK, "to see and start tasks.", "!<nav", "!/logout")
	h.contains(h.get("/login?next=%2Ftasks%2Fx%3Fa", browser...), http.StatusOK, "to see this task and act on it.")
}
