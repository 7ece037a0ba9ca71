package web

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/web/api"
	"github.com/errand-fleet/errand/web/auth"
)

// linkWorld is a console where people log in at GitHub, and what Slack has shown them.
type linkWorld struct {
	*harness
	gh    *githubfake.Server
	app   githubfake.OAuthApp
	ahead atomic.Int64 // how far the console's clock is ahead
}

func newLinkWorld(t *testing.T, people ...people.Person) *linkWorld {
	t.Helper()
	gh, err := githubfake.New(githubfake.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(gh.Close)
	w := &linkWorld{gh: gh}
	at := &auth.Provider{
		Issuer: gh.URL(), ClientID: "Iv1.errand", Secret: "github-client-secret", GitHub: gh.APIURL(),
		HTTP: &http.Client{Timeout: 10 * time.Second},
	}
	w.harness = newHarness(t, func(c *Config) {
		c.Provider, c.now = at, func() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }
		c.Access = &auth.Access{People: people, Grants: []auth.Grant{{Role: policy.Viewer, People: []string{"member"}}}}
	})
	at.Redirect = w.server.URL + "/login/callback"
	w.app = githubfake.OAuthApp{ClientID: at.ClientID, Secret: at.Secret, Redirect: at.Redirect}
	return w
}

// offer returns the address that /errand link shows to a person in Slack.
func (w *linkWorld) offer(user string) string {
	w.Helper()
	code, err := w.Desk.OfferLink(w.Context(), people.Link{
		User: user, Name: "Name\u202e of " + user, Team: "T1", Site: "https://acme.slack.test/",
	})
	if err != nil {
		w.Fatal(err)
	}
	return "/link?code=" + code
}

// linking is someone with a browser who has opened an offer and logged in at GitHub.
func (w *linkWorld) linking(login, address string) (p *person, page answer) {
	w.Helper()
	w.gh.RegisterOAuth(w.app, githubfake.Person{Login: login, Email: login + "@x.test"})
	p = w.person()
	return p, p.visit(p.callback(address))
}

var hiddenField = regexp.MustCompile(`name="(code|proof)" value="([^"]*)"`)

// confirm sends the form of a page, with changes and headers.
func (p *person) confirm(page answer, change map[string]string, hs ...string) answer {
	p.Helper()
	form := url.Values{}
	for _, field := range hiddenField.FindAllStringSubmatch(page.text, -1) {
		form.Set(field[1], field[2])
	}
	for name, value := range change {
		form.Set(name, value)
	}
	req := p.request("POST", "/link", form.Encode(), append(header{
		"Authorization", "", "Accept", "text/html", "Content-Type", "application/x-www-form-urlencoded", "Origin",
		p.server.URL, "Sec-Fetch-Site", "same-origin",
	}, hs...))
	for _, c := range p.jar.Cookies(req.URL) {
		req.AddCookie(c)
	}
	return p.send(req)
}

func (w *linkWorld) links() (all []string) {
	w.Helper()
	var list api.LinkList
	w.into(w.get("/api/links"), http.StatusOK, &list)
	for _, l := range list.Links {
		all = append(all, l.User+" "+l.Login)
	}
	slices.Sort(all)
	return all
}

// linked compares the links.
func (w *linkWorld) linked(what string, want ...string) {
	w.Helper()
	if got := w.links(); !slices.Equal(got, want) {
		w.Errorf("%s: links %q, want %q", what, got, want)
	}
}

// A link is made by the person who logs in at GitHub and confirms on a page that names the account in Slack. It needs
// no role, gives none, and is in the audit log. Redis has neither code nor proof.
func TestLinkAccounts(t *testing.T) {
	t.Parallel()
	w := newLinkWorld(t)
	address := w.offer("U0ANN")
	first := w.person().visit(address)
	w.contains(first, http.StatusOK, `Name\u202e of U0ANN`, "U0ANN", "https://acme.slack.test/", "yourself typed",
		"Log in with GitHub", "!<form")
	p, page := w.linking("ann", address)
	w.contains(page, http.StatusOK, `<strong>Name\u202e of U0ANN</strong>`, "https://acme.slack.test/",
		"<strong>ann</strong>", "yourself typed", "your rights on GitHub")
	w.linked("before the confirmation")
	code := strings.TrimPrefix(address, "/link?code=")
	if dump := w.dump(); strings.Contains(dump, code) {
		t.Error("Redis has the code")
	}
	if again := p.visit(address); again.StatusCode != http.StatusOK || again.text != page.text {
		t.Errorf("reloaded: %s", again.Status)
	}
	w.contains(p.confirm(page, nil), http.StatusOK, "Linked", "U0ANN")
	w.linked("confirmed", "U0ANN ann")
	if a, _ := p.step("GET", "/"); a.StatusCode != http.StatusForbidden {
		t.Errorf("without a role the console says %s", a.Status)
	}
	var audit api.AuditPage
	w.into(w.get("/api/audit?what=link"), http.StatusOK, &audit)
	if len(audit.Entries) != 1 || audit.Entries[0].What != "link slack/U0ANN to github/ann" ||
		audit.Entries[0].Who != "ann@x.test" {
		t.Errorf("audit: %+v", audit.Entries)
	}
	// Used before, in the same browser and in another one.
	w.contains(p.confirm(page, nil), http.StatusNotFound, "used before")
	w.contains(p.visit(address), http.StatusNotFound, "used before")
	w.contains(w.person().visit(address), http.StatusNotFound, "used before")
	// An operator removes it.
	if a := w.do("DELETE", "/api/links/U0ANN", ""); a.StatusCode != http.StatusNoContent {
		t.Errorf("remove: %s", a.Status)
	}
	w.linked("removed")
	w.problem(w.do("DELETE", "/api/links/U0ANN", ""), http.StatusNotFound)
}

// An offer works only in time, in one browser, with its own form, and from a page of the console.
func TestLinksThatAreRefused(t *testing.T) {
	t.Parallel()
	w := newLinkWorld(t, people.Person{Name: "carl", Slack: "U0CARL", GitHub: "carl"})

	w.contains(w.person().visit("/link?code=AAAAAAAAAAAAAAAAAAAAAAAAAA"), http.StatusNotFound, "does not work")
	w.contains(w.person().visit("/link"), http.StatusNotFound, "does not work")

	address := w.offer("U0ANN")
	p, page := w.linking("ann", address)
	other, second := w.linking("member", w.offer("U0EVE"))
	w.contains(other.visit(address), http.StatusNotFound, "does not work") // bound to the first browser
	for what, a := range map[string]answer{
		"another browser's form": other.confirm(page, nil),
		"a forged proof":         p.confirm(page, map[string]string{"proof": strings.Repeat("0", 64)}),
		"no proof":               p.confirm(page, map[string]string{"proof": ""}),
		"another code":           p.confirm(page, map[string]string{"code": "AAAAAAAAAAAAAAAAAAAAAAAAAA"}),
		"another site": p.confirm(page, nil, "Origin", "https://elsewhere.test",
			"Sec-Fetch-Site", "cross-site"),
		"no session": w.person().confirm(page, nil),
	} {
		if a.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %s", what, a.Status)
		}
	}
	w.linked("refused")
	// A session by the console token proves no account at GitHub.
	w.problem(w.do("POST", "/link", "code=x", "Authorization", "", "Cookie", auth.CookieName+"="+w.cookieValue()),
		http.StatusForbidden)

	w.contains(p.confirm(page, nil), http.StatusOK, "Linked")
	w.linked("the first", "U0ANN ann")
	_ = second

	// An account at GitHub is lent to one account in Slack, and what the operator has set counts.
	for login, user := range map[string]string{"ann": "U0MALLORY", "Ann": "U0MALLORY", "carl": "U0MALLORY"} {
		p, page := w.linking(login, w.offer(user))
		if a := p.confirm(page, nil); a.StatusCode != http.StatusConflict {
			t.Errorf("%s to %s: %s", user, login, a.Status)
		}
	}
	w.linked("conflicts", "U0ANN ann")

	// Too late: before and after the login.
	address = w.offer("U0BOB")
	later := w.offer("U0BOB")
	p, page = w.linking("bob", address)
	w.ahead.Store(int64(people.OfferTime))
	w.contains(p.confirm(page, nil), http.StatusNotFound, "older than 10 minutes")
	w.contains(w.person().visit(later), http.StatusNotFound, "older than 10 minutes")
	w.linked("too late", "U0ANN ann")

	// Where people log in elsewhere, nobody is at GitHub.
	h, _ := withOpenID(t)
	code, err := h.Desk.OfferLink(t.Context(), people.Link{User: "U0ANN"})
	if err != nil {
		t.Fatal(err)
	}
	q := h.person()
	q.visit(q.callback("/"))
	h.contains(q.visit("/link?code="+code), http.StatusOK, "!<form method=\"post\" action=\"/link\"")
}

// A person without a role gets a session only for an offer that is open.
func TestLoginForALink(t *testing.T) {
	t.Parallel()
	w := newLinkWorld(t)
	w.gh.RegisterOAuth(w.app, githubfake.Person{Login: "stranger", Email: "s@x.test"})
	for _, next := range []string{"/", "/tasks/x"} {
		p := w.person()
		p.refused(next, p.visit(p.callback("/login?next="+url.QueryEscape(next))), http.StatusForbidden, "has no role")
	}
	p := w.person()
	_, to := p.step("GET", "/login/start?"+url.Values{"next": {"/link?code=wrong"}}.Encode())
	_, back := p.step("GET", to)
	p.refused("a wrong code", p.visit(back), http.StatusForbidden, "has no role")
}

// unread is the body of a sender who is not authenticated, and knows whether they have a deadline.
type unread struct {
	*httptest.ResponseRecorder
	deadline, read bool
}

func (u *unread) SetReadDeadline(at time.Time) error {
	u.deadline = at.After(time.Now())
	return nil
}

func (u *unread) Read([]byte) (int, error) {
	u.read = true
	return 0, io.EOF
}

// The form of a sender without a session is not read, and nobody can send a form for long.
func TestLinkFormsAreBounded(t *testing.T) {
	t.Parallel()
	w := newLinkWorld(t)
	u := &unread{ResponseRecorder: httptest.NewRecorder()}
	req := w.request("POST", "/link", "", header{
		"Authorization", "", "Content-Type", "application/x-www-form-urlencoded", "Origin", w.server.URL,
		"Sec-Fetch-Site", "same-origin",
	})
	req.Body, req.Host = io.NopCloser(u), req.URL.Host
	w.handler.ServeHTTP(u, req)
	if u.Code != http.StatusForbidden || !u.deadline || u.read {
		t.Errorf("status %d, deadline %t, read %t: %s", u.Code, u.deadline, u.read, u.Body)
	}
}
