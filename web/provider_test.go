package web

import (
	"context"
	"fmt"
	"html"
	"log/slog"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/internal/fake/oidcfake"
	"github.com/errand-fleet/errand/internal/testlog"
	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/web/api"
	"github.com/errand-fleet/errand/web/auth"
)

// ann is who logs in unless a test says otherwise.
var ann = oidcfake.Claims{
	"sub": "a-1", "email": "ann@acme.test", "email_verified": true, "groups": []string{"staff", "platform"},
	"gh": "ann-acme",
}

// withOpenID starts a provider, and a console where people log in there.
func withOpenID(t *testing.T, set ...func(*Config)) (*harness, *oidcfake.Server) {
	t.Helper()
	fake := oidcfake.New(t)
	fake.LogIn(ann, nil)
	at := &auth.Provider{
		Issuer: fake.URL, ClientID: oidcfake.ClientID, Secret: oidcfake.Secret, Groups: "groups", Account: "gh",
		HTTP: &http.Client{Timeout: 10 * time.Second},
	}
	h := newHarness(t, append([]func(*Config){func(c *Config) {
		c.Provider = at
		c.Access = &auth.Access{Grants: []auth.Grant{{Role: policy.Admin, People: []string{"*@acme.test"}}}}
	}}, set...)...)
	at.Redirect = h.server.URL + "/login/callback"
	fake.Register(at.Redirect)
	return h, fake
}

// person is someone with a browser, which keeps cookies and follows redirects and pages that refresh.
type person struct {
	*harness
	jar     http.CookieJar
	visited []string
}

func (h *harness) person() *person {
	h.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		h.Fatal(err)
	}
	return &person{harness: h, jar: jar}
}

// step sends one request and returns where the answer leads; "" if nowhere.
func (p *person) step(method, to string, hs ...string) (a answer, next string) {
	p.Helper()
	at, err := url.Parse(p.server.URL)
	if err == nil {
		at, err = at.Parse(to)
	}
	if err != nil {
		p.Fatal(err)
	}
	p.visited = append(p.visited, at.String())
	req := p.request(method, "/", "", append(header{"Authorization", "", "Accept", "text/html"}, hs...))
	req.URL, req.Host = at, at.Host
	for _, c := range p.jar.Cookies(at) {
		req.AddCookie(c)
	}
	a = p.send(req)
	p.jar.SetCookies(at, a.Cookies())
	next = a.Header.Get("Location")
	if _, to, ok := strings.Cut(a.Header.Get("Refresh"), "url="); ok {
		next = to
	}
	if next == "" {
		return a, ""
	}
	if at, err = at.Parse(next); err != nil {
		p.Fatal(err)
	}
	return a, at.String()
}

// visit follows an address to its end.
func (p *person) visit(to string) (a answer) {
	p.Helper()
	for range 12 {
		if a, to = p.step("GET", to); to == "" {
			return a
		}
	}
	p.Fatalf("no end: %q", p.visited)
	return a
}

var startLink = regexp.MustCompile(`href="(/login/start[^"]*)"`)

// authorize opens a page and presses the button of the login. It returns the address at the provider.
func (p *person) authorize(page string) string {
	p.Helper()
	a := p.visit(page)
	link := startLink.FindStringSubmatch(a.text)
	if link == nil {
		p.Fatalf("%s leads to no login: %s %s", page, a.Status, a.text)
	}
	a, to := p.step("GET", html.UnescapeString(link[1]))
	if to == "" {
		p.Fatalf("the login does not begin: %s %s", a.Status, a.text)
	}
	return to
}

// callback logs in at the provider and returns the address that it sends the browser to.
func (p *person) callback(page string) string {
	p.Helper()
	_, back := p.step("GET", p.authorize(page))
	return back
}

// session returns the browser's session cookie.
func (p *person) session() string {
	at, _ := url.Parse(p.server.URL)
	for _, c := range p.jar.Cookies(at) {
		if c.Name == auth.CookieName {
			return c.Value
		}
	}
	return ""
}

// sessions returns the keys of sessions in Redis. A used state has the same kind of key.
func (h *harness) sessions() (keys []string) {
	h.Helper()
	for _, key := range h.redis.Keys(h.Context(), "errand:login:*").Val() {
		if h.redis.Get(h.Context(), key).Val() != "used" {
			keys = append(keys, key)
		}
	}
	return keys
}

// refused checks that a login ended at the login page without a session.
func (p *person) refused(what string, a answer, status int, parts ...string) {
	p.Helper()
	if keys := p.sessions(); a.StatusCode != status || !strings.Contains(a.text, `action="/login"`) ||
		p.session() != "" || len(keys) > 0 {
		p.Errorf("%s: %s, session %q, in Redis %v: %s", what, a.Status, p.session(), keys, a.text)
	}
	for _, part := range parts {
		if !strings.Contains(html.UnescapeString(a.text), part) {
			p.Errorf("%s: want %q in %s", what, part, a.text)
		}
	}
}

// A login leads to the page that was asked for. What the provider sends is nowhere in the log, Redis or the addresses
// of pages, and Referer headers do not carry it on.
func TestLoginAtAProvider(t *testing.T) {
	t.Parallel()
	var log testlog.Log
	h, fake := withOpenID(t, func(c *Config) {
		c.Log = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	id := h.submit(1)
	p := h.person()
	back := p.callback("/tasks/" + id + "?a=b&c")
	a, next := p.step("GET", back)
	if a.StatusCode != http.StatusOK || next != h.server.URL+"/tasks/"+id+"?a=b&c" ||
		a.Header.Get("Referrer-Policy") != "no-referrer" || a.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%s to %q with %v: %s", a.Status, next, a.Header, a.text)
	}
	h.contains(p.visit(next), http.StatusOK, "Do it")
	var page api.AuditPage
	h.into(h.get("/api/audit"), http.StatusOK, &page)
	if len(page.Entries) != 1 || page.Entries[0].What != "login" || page.Entries[0].Who != "ann@acme.test" ||
		page.Entries[0].How != "login" || page.Entries[0].Role != "admin" {
		t.Errorf("audit log: %+v", page.Entries)
	}
	everything, at := log.String()+h.dump(), strings.Join(slices.DeleteFunc(slices.Clone(p.visited),
		func(to string) bool { return to == back }), "\n")
	for i, secret := range append(fake.Secrets(), p.session()) {
		if secret == "" || strings.Contains(everything, secret) || strings.Contains(at, secret) {
			t.Errorf("secret %d is in the log, Redis or an address", i)
		}
	}
	if why := fake.Refusals(); len(why) > 0 {
		t.Errorf("the provider refused: %v", why)
	}
}

// An ID token that the provider did not make for this login opens nothing.
func TestTokensOfTheProviderThatAreRefused(t *testing.T) {
	t.Parallel()
	h, fake := withOpenID(t)
	with := func(name string, value any) func(oidcfake.Claims, oidcfake.Key) string {
		return func(c oidcfake.Claims, k oidcfake.Key) string {
			if c[name] = value; value == nil {
				delete(c, name)
			}
			return k.Sign(c)
		}
	}
	first := ""
	for name, token := range map[string]func(oidcfake.Claims, oidcfake.Key) string{
		"for another client":   with("aud", "another"),
		"for no client":        with("aud", nil),
		"expired":              with("exp", time.Now().Add(-time.Minute).Unix()),
		"without an end":       with("exp", nil),
		"not yet valid":        with("nbf", time.Now().Add(time.Hour).Unix()),
		"of another issuer":    with("iss", "https://elsewhere.test"),
		"without a nonce":      with("nonce", nil),
		"with an empty nonce":  with("nonce", ""),
		"for another login":    with("nonce", "another-nonce-0123456789"),
		"with another key":     func(c oidcfake.Claims, k oidcfake.Key) string { return oidcfake.NewKey(k.ID).Sign(c) },
		"signed symmetrically": func(c oidcfake.Claims, k oidcfake.Key) string { return k.SignHS256(c) },
		"unsigned":             func(c oidcfake.Claims, _ oidcfake.Key) string { return oidcfake.Unsigned(c) },
		"missing":              func(oidcfake.Claims, oidcfake.Key) string { return "" },
		"changed":              func(c oidcfake.Claims, k oidcfake.Key) string { return "A" + k.Sign(c) },
	} {
		fake.Answer(token)
		p := h.person()
		p.refused("a token "+name, p.visit(p.callback("/")), http.StatusUnauthorized,
			"The login at 127.0.0.1 did not work.")
	}
	// A token that was valid for one login is not for the next.
	fake.Answer(func(c oidcfake.Claims, k oidcfake.Key) string { first = k.Sign(c); return "" })
	p := h.person()
	p.visit(p.callback("/"))
	fake.Answer(func(oidcfake.Claims, oidcfake.Key) string { return first })
	p.refused("a token of the login before", p.visit(p.callback("/")), http.StatusUnauthorized)
	fake.Answer(nil)
	h.contains(p.visit(p.callback("/audit")), http.StatusOK, "Audit log")
}

// A key that the provider has withdrawn is refused, and a new one counts at once.
func TestKeysRotate(t *testing.T) {
	t.Parallel()
	h, fake := withOpenID(t)
	p := h.person()
	h.contains(p.visit(p.callback("/audit")), http.StatusOK, "Audit log")
	old := fake.Rotate()
	p = h.person()
	h.contains(p.visit(p.callback("/audit")), http.StatusOK, "Audit log")
	h.redis.Del(t.Context(), h.sessions()...)
	fake.Answer(func(c oidcfake.Claims, _ oidcfake.Key) string { return old.Sign(c) })
	p = h.person()
	p.refused("the old key", p.visit(p.callback("/")), http.StatusUnauthorized)
}

// A login counts once, in the browser that began it, and within ten minutes. A code counts only with its verifier.
func TestLoginBelongsToItsBrowser(t *testing.T) {
	t.Parallel()
	var late atomic.Int64
	h, fake := withOpenID(t, func(c *Config) {
		c.now = func() time.Time { return time.Now().Add(time.Duration(late.Load())) }
	})
	at, _ := url.Parse(h.server.URL)

	mine, other := h.person(), h.person()
	back := mine.callback("/")
	other.refused("in a browser that began none", other.visit(back), http.StatusUnauthorized)
	other.callback("/")
	other.refused("in a browser that began another", other.visit(back), http.StatusUnauthorized)
	began := mine.jar.Cookies(at)
	h.contains(mine.visit(back), http.StatusOK, "Log out")
	if cookies := mine.jar.Cookies(at); len(cookies) != 1 {
		t.Errorf("after the login the browser has %v", cookies)
	}

	h.redis.Del(t.Context(), h.sessions()...)
	mine = h.person()
	mine.refused("a second time", mine.visit(back), http.StatusUnauthorized)
	mine.jar.SetCookies(at, began)
	mine.refused("a second time with the browser's cookies", mine.visit(back), http.StatusUnauthorized)

	// The provider gives a second code for the same state.
	mine = h.person()
	authorize := mine.authorize("/")
	began = mine.jar.Cookies(at)
	_, first := mine.step("GET", authorize)
	h.contains(mine.visit(first), http.StatusOK, "Log out")
	h.redis.Del(t.Context(), h.sessions()...)
	mine = h.person()
	mine.jar.SetCookies(at, began)
	_, second := mine.step("GET", authorize)
	if first == second {
		t.Fatal("the provider gave the same code")
	}
	mine.refused("with a used state", mine.visit(second), http.StatusUnauthorized)

	// Someone puts the code of their own login into the victim's.
	mine, other = h.person(), h.person()
	back = mine.callback("/")
	begun := other.callback("/")
	mixed, _ := url.Parse(back)
	theirs, _ := url.Parse(begun)
	query := mixed.Query()
	query.Set("code", theirs.Query().Get("code"))
	mixed.RawQuery = query.Encode()
	mine.refused("with another's code", mine.visit(mixed.String()), http.StatusUnauthorized)
	if why := fake.Refusals(); !slices.Contains(why, "invalid_grant the verifier is not that of the challenge") {
		t.Errorf("the provider refused: %v", why)
	}

	for name, change := range map[string]func(url.Values){
		"without a state": func(q url.Values) { q.Del("state") }, "with an empty state": func(q url.Values) {
			q.Set("state", "")
		},
		"with another state": func(q url.Values) { q.Set("state", strings.Repeat("A", 43)) },
		"with a refusal":     func(q url.Values) { q.Set("error", "access_denied") },
		"without a code":     func(q url.Values) { q.Del("code") },
	} {
		mine = h.person()
		to, _ := url.Parse(mine.callback("/"))
		query := to.Query()
		change(query)
		to.RawQuery = query.Encode()
		mine.refused(name, mine.visit(to.String()), http.StatusUnauthorized)
	}
	mine = h.person()
	back = mine.callback("/")
	for _, c := range mine.jar.Cookies(at) {
		text, signature, _ := strings.Cut(c.Value, ".")
		c.Value, c.Path = text[:len(text)-4]+"AAAA."+signature, "/"
		mine.jar.SetCookies(at, []*http.Cookie{c})
	}
	mine.refused("with a changed cookie", mine.visit(back), http.StatusUnauthorized)
	mine = h.person()
	back = mine.callback("/")
	late.Store(int64(11 * time.Minute))
	mine.refused("too late", mine.visit(back), http.StatusUnauthorized)
}

// A login leads only to pages of this console, also if the address is too long for a cookie.
func TestLoginLeadsNowhereElse(t *testing.T) {
	t.Parallel()
	h, _ := withOpenID(t)
	for next, want := range map[string]string{
		"https://elsewhere.test/x": "/x", "//elsewhere.test/x": "/x", `/\elsewhere.test`: "/%5Celsewhere.test",
		"javascript:alert(1)":              "/",
		"/?q=" + strings.Repeat("x", 5000): "/", "/chat?a=b": "/chat?a=b",
	} {
		p := h.person()
		_, to := p.step("GET", "/login/start?"+url.Values{"next": {next}}.Encode())
		_, back := p.step("GET", to)
		if a, got := p.step("GET", back); a.StatusCode != http.StatusOK || got != h.server.URL+want {
			t.Errorf("next %.60q: %s to %q, want %q", next, a.Status, got, want)
		}
	}
}

// While the provider is away people read what to do, and the first login after it is back works.
func TestProviderIsAway(t *testing.T) {
	t.Parallel()
	h, fake := withOpenID(t)
	const remedy = "127.0.0.1 does not answer as it should. Try again in a minute."
	fake.Fail(http.StatusServiceUnavailable)
	p := h.person()
	p.refused("at the start", p.visit("/login/start?next=/audit"), http.StatusServiceUnavailable, remedy,
		"login: in errand.yaml", `value="/audit"`)
	fake.Fail(0)
	back := p.callback("/audit")
	fake.Fail(http.StatusBadGateway)
	p.refused("at the end", p.visit(back), http.StatusServiceUnavailable, remedy)
	fake.Fail(0)
	h.contains(p.visit(p.callback("/audit")), http.StatusOK, "Audit log")
	fake.LogIn(nil, nil)
	h.redis.Del(t.Context(), h.sessions()...)
	p = h.person()
	p.refused("by a person who refuses", p.visit(p.callback("/")), http.StatusUnauthorized, "did not work")
}

// A login gives the browser a new session. A log-out, time and another provider end it, and another site cannot log
// anyone out.
func TestSessionOfALogin(t *testing.T) {
	t.Parallel()
	h, _ := withOpenID(t)
	at, _ := url.Parse(h.server.URL)
	works := func(p *person) bool { a, _ := p.step("GET", "/audit"); return a.StatusCode == http.StatusOK }
	logIn := func(p *person) *person {
		h.contains(p.visit(p.callback("/audit")), http.StatusOK, "Audit log")
		return p
	}
	// Someone puts a session's ID into the browser of a victim who then logs in.
	p := h.person()
	planted := []*http.Cookie{{Name: auth.CookieName, Value: strings.Repeat("A", 43), Path: "/"}}
	p.jar.SetCookies(at, planted)
	logIn(p)
	thief := h.person()
	thief.jar.SetCookies(at, planted)
	if works(thief) || p.session() == planted[0].Value {
		t.Error("the planted session opens")
	}
	// Each login replaces the session before.
	before := h.person()
	before.jar.SetCookies(at, p.jar.Cookies(at))
	_, back := p.step("GET", "/login/start")
	_, back = p.step("GET", back)
	p.visit(back)
	if works(before) || !works(p) || len(h.sessions()) != 1 {
		t.Errorf("after a second login: the old session works: %t, the new one: %t, %v", works(before),
			works(p), h.sessions())
	}

	for _, hs := range [][]string{{"Origin", "https://elsewhere.test"}, {"Sec-Fetch-Site", "cross-site"}} {
		if a, _ := p.step("POST", "/logout", hs...); a.StatusCode != http.StatusForbidden || !works(p) {
			t.Errorf("%v logs out: %s", hs, a.Status)
		}
	}
	if a, _ := p.step("GET", "/logout"); a.StatusCode != http.StatusMethodNotAllowed || !works(p) {
		t.Errorf("a link logs out: %s", a.Status)
	}
	before.jar.SetCookies(at, p.jar.Cookies(at))
	if _, to := p.step("POST", "/logout", "Origin", h.server.URL); to != h.server.URL+"/login" ||
		len(h.sessions()) > 0 || p.session() != "" || works(before) {
		t.Errorf("a log-out leads to %q and leaves %v", to, h.sessions())
	}

	logIn(p)
	key := h.sessions()[0]
	if ttl := h.redis.TTL(t.Context(), key).Val(); ttl <= 0 || ttl > 12*time.Hour {
		t.Errorf("the session lasts %s", ttl)
	}
	h.redis.PExpireAt(t.Context(), key, time.Now().Add(-time.Second))
	if works(p) {
		t.Error("an expired session opens")
	}
	logIn(p)
	cfg := h.config
	cfg.Mux, cfg.Provider = nil, &auth.Provider{Issuer: "https://new.test"}
	changed, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = changed.Close() })
	h.server.Config.Handler = changed
	if works(p) {
		t.Error("the session of a provider that was removed opens")
	}
}

// Over HTTPS cookies belong to this host alone: one that another host of the domain has set, or that was set without
// HTTPS, is no session.
func TestCookiesOverHTTPS(t *testing.T) {
	t.Parallel()
	h, _ := withOpenID(t)
	const https = "https"
	at, _ := url.Parse(h.server.URL)
	begun := header{"X-Forwarded-Proto", https}
	a := h.get("/login/start", append(begun, browser...)...)
	begun = append(begun, "Cookie", cookieText(a.Cookies()))
	_, back := h.person().step("GET", a.Header.Get("Location"))
	a = h.get(back[len(at.String()):], append(begun, browser...)...)
	want := regexp.MustCompile(`^__Host-` + auth.CookieName +
		`=[\w-]{43}; Path=/; Max-Age=43200; HttpOnly; Secure; SameSite=Strict$`)
	set := a.Header["Set-Cookie"]
	if len(set) != 2 ||
		!strings.HasPrefix(set[0], "__Host-errand_login=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Lax") ||
		!want.MatchString(set[1]) {
		t.Errorf("cookies %q", set)
	}
	id := strings.TrimPrefix(strings.Split(set[1], ";")[0], "__Host-"+auth.CookieName+"=")
	for name, open := range map[string]bool{"__Host-" + auth.CookieName: true, auth.CookieName: false} {
		got := h.get("/api/tasks", "Authorization", "", "X-Forwarded-Proto", https, "Cookie", name+"="+id)
		if (got.StatusCode == http.StatusOK) != open {
			t.Errorf("%s: %s", name, got.Status)
		}
	}
}

func cookieText(list []*http.Cookie) string {
	var all []string
	for _, c := range list {
		all = append(all, c.Name+"="+c.Value)
	}
	return strings.Join(all, "; ")
}

// Many cookies cost few requests to Redis.
func TestManyCookies(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	calls := func() (n int) {
		for line := range strings.SplitSeq(h.redis.Info(t.Context(), "commandstats").Val(), "\n") {
			_, _ = fmt.Sscanf(line, "cmdstat_get:calls=%d,", &n)
		}
		return n
	}
	before := calls()
	h.problem(h.get("/api/tasks", "Authorization", "", "Cookie", strings.Repeat(auth.CookieName+"=x; ", 500)+"a=b"),
		http.StatusUnauthorized)
	if n := calls() - before; n > 4 {
		t.Errorf("%d reads", n)
	}
}

// People have the roles that go by their verified address, their groups or their domain; one who has none gets no
// session, and nothing is recorded of them.
func TestRolesOfPeople(t *testing.T) {
	t.Parallel()
	var asked []string
	h, fake := withOpenID(t, func(c *Config) {
		c.Access = &auth.Access{
			Grants: []auth.Grant{
				{Role: policy.Viewer, People: []string{"*@acme.test"}},
				{Role: policy.User, Groups: []string{"payments"}, Repositories: []string{"acme/pay*"}},
				{Role: policy.Operator, Groups: []string{"platform"}},
				{Role: policy.Admin, People: []string{"Root@acme.test"}},
			},
			Forge: func(_ context.Context, repo, login string) (bool, error) {
				asked = append(asked, login)
				return repo != "acme/secret", nil
			},
		}
	})
	person := func(email string, more oidcfake.Claims) oidcfake.Claims {
		c := oidcfake.Claims{"sub": "s-" + email, "email": email, "email_verified": true}
		maps.Copy(c, more)
		return c
	}
	for name, tc := range map[string]struct {
		claims, info oidcfake.Claims
		role         string // "": none
		pay, secret  bool   // sees the task
	}{
		"by domain":  {person("bo@acme.test", nil), nil, "viewer", true, true},
		"by address": {person("root@ACME.test", nil), nil, "admin", true, true},
		"by group": {
			person("c@x.test", oidcfake.Claims{"groups": []string{"a", "platform"}}), nil, "operator", true, true,
		},
		"by one group": {
			person("c@x.test", oidcfake.Claims{"groups": "platform"}), nil, "operator", true, true,
		},
		"in repositories": {
			person("d@x.test", oidcfake.Claims{"groups": []string{"payments"}}), nil, "user", true, false,
		},
		"hidden by the forge": {person("e@acme.test", oidcfake.Claims{"gh": "e-acme"}), nil, "viewer", true, false},
		"by the user info": {
			oidcfake.Claims{"sub": "f"},
			oidcfake.Claims{"email": "f@acme.test", "email_verified": true},
			"viewer", true, true,
		},
		"not verified": {
			oidcfake.Claims{"sub": "g", "email": "g@acme.test", "email_verified": false}, nil, "", false, false,
		},
		"verified by silence": {oidcfake.Claims{"sub": "g", "email": "g@acme.test"}, nil, "", false, false},
		"a subdomain":         {person("h@acme.test.evil.test", nil), nil, "", false, false},
		"a chosen name": {oidcfake.Claims{
			"sub": "root@acme.test", "name": "root@acme.test", "preferred_username": "root@acme.test",
		}, nil, "", false, false},
		"a group by its prefix": {person("i@x.test",
			oidcfake.Claims{"groups": []string{"platform-guests", "Platform"}}), nil, "", false, false},
		"an account that is an address": {
			person("l@acme.test", oidcfake.Claims{"gh": "root@acme.test"}), nil, "none", false, false,
		},
		"an account that is no text": {
			person("l@acme.test", oidcfake.Claims{"gh": []string{"l-acme"}}), nil, "none", false, false,
		},
		"info of another": {oidcfake.Claims{"sub": "j"}, oidcfake.Claims{
			"sub": "k", "email": "j@acme.test", "email_verified": true,
		}, "none", false, false},
	} {
		h.redis.FlushDB(t.Context()) // its scripts stay
		pay, secret := h.inRepo(1, "acme/payments"), h.inRepo(2, "acme/secret")
		fake.LogIn(tc.claims, tc.info)
		p := h.person()
		a := p.visit(p.callback("/"))
		var audit api.AuditPage
		h.into(h.get("/api/audit"), http.StatusOK, &audit)
		switch tc.role {
		case "":
			p.refused(name, a, http.StatusForbidden, "has no role", "roles: in errand.yaml")
		case "none":
			p.refused(name, a, http.StatusUnauthorized, "did not work")
		default:
			if a.StatusCode != http.StatusOK || len(audit.Entries) != 1 || audit.Entries[0].Role != tc.role {
				t.Errorf("%s: %s, %+v", name, a.Status, audit.Entries)
			}
		}
		if tc.role == "" && len(audit.Entries) > 0 {
			t.Errorf("%s: recorded %+v", name, audit.Entries)
		}
		for id, want := range map[string]bool{pay: tc.pay, secret: tc.secret} {
			if a, _ := p.step("GET", "/api/tasks/"+id); (a.StatusCode == http.StatusOK) != want {
				t.Errorf("%s: %s of %s", name, a.Status, id)
			}
		}
	}
	if !slices.Contains(asked, "e-acme") || len(slices.Compact(asked)) != 1 {
		t.Errorf("the forge was asked about %q", asked)
	}
}

// At GitHub, organisations and teams are groups, on every page of the list, and the account is what the forge is asked
// about.
func TestLoginAtGitHub(t *testing.T) {
	t.Parallel()
	gh, err := githubfake.New(githubfake.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(gh.Close)
	var log testlog.Log
	at := &auth.Provider{
		Issuer: gh.URL(), ClientID: "Iv1.errand", Secret: "github-client-secret", GitHub: gh.APIURL(),
		HTTP: &http.Client{Timeout: 10 * time.Second},
	}
	h := newHarness(t, func(c *Config) {
		c.Log = slog.New(slog.NewJSONHandler(&log, nil))
		c.Provider = at
		c.Access = &auth.Access{
			Grants: []auth.Grant{
				{Role: policy.Viewer, Groups: []string{"acme"}},
				{Role: policy.Operator, Groups: []string{"acme/platform"}},
				{Role: policy.User, People: []string{"*@acme.test"}},
				{Role: policy.Admin, People: []string{"root-acme"}},
			},
			Forge: func(_ context.Context, repo, login string) (bool, error) {
				return login == "ann-acme" && repo == "acme/app", nil
			},
		}
	})
	at.Redirect = h.server.URL + "/login/callback"
	app := githubfake.OAuthApp{ClientID: at.ClientID, Secret: at.Secret, Redirect: at.Redirect}
	var many []string
	for n := range 130 {
		many = append(many, fmt.Sprintf("other/team-%d", n))
	}
	for name, tc := range map[string]struct {
		person    githubfake.Person
		who, role string // "": none
		app       int    // the status of a task of acme/app
	}{
		"a team": {githubfake.Person{
			Login: "ann-acme", Email: "ann@x.test", Orgs: []string{"acme"}, Teams: append(many, "acme/platform"),
		}, "ann@x.test", "operator", 200},
		"an organisation": {githubfake.Person{
			Login: "ann-acme", Email: "ann@x.test", Orgs: []string{"x", "acme"}, Teams: []string{"x/platform"},
		}, "ann@x.test", "viewer", 200},
		"a domain": {githubfake.Person{Login: "bo", Email: "bo@acme.test"}, "bo@acme.test", "user", 404},
		"an account": {
			githubfake.Person{Login: "Root-Acme", Email: "r@x.test", Unverified: true},
			"GitHub/Root-Acme", "admin",
			404,
		},
		"not verified": {githubfake.Person{Login: "eve", Email: "eve@acme.test", Unverified: true}, "", "", 401},
		"named as an admin": {
			githubfake.Person{Login: "console", Email: "eve@x.test", Orgs: []string{"acme-fans"}}, "", "", 401,
		},
	} {
		h.redis.FlushDB(t.Context())
		id := h.inRepo(1, "acme/app")
		gh.RegisterOAuth(app, tc.person)
		p := h.person()
		a := p.visit(p.callback("/"))
		var audit api.AuditPage
		h.into(h.get("/api/audit"), http.StatusOK, &audit)
		if tc.role == "" {
			p.refused(name, a, http.StatusForbidden, "has no role")
		} else if a.StatusCode != http.StatusOK || len(audit.Entries) != 1 || audit.Entries[0].Role != tc.role ||
			audit.Entries[0].Who != tc.who {
			t.Errorf("%s: %s %+v", name, a.Status, audit.Entries)
		}
		if got, _ := p.step("GET", "/api/tasks/"+id); got.StatusCode != tc.app {
			t.Errorf("%s: the task: %s", name, got.Status)
		}
		for _, secret := range append(gh.OAuthTokens(), at.Secret) {
			if strings.Contains(log.String()+h.dump(), secret) {
				t.Errorf("%s: a secret is in the log or Redis", name)
			}
		}
	}
	h.redis.FlushDB(t.Context())
	p := h.person()
	back := p.callback("/")
	gh.Fail("GET /user/teams", githubfake.Failure{Status: http.StatusBadGateway})
	p.refused("while GitHub is away", p.visit(back), http.StatusServiceUnavailable,
		"GitHub does not answer as it should.")
	gh.RegisterOAuth(githubfake.OAuthApp{ClientID: at.ClientID, Secret: "another", Redirect: at.Redirect},
		githubfake.Person{Login: "ann-acme"})
	p.refused("with a wrong secret", p.visit(p.callback("/")), http.StatusUnauthorized, "did not work")
}
