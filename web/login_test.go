package web

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/web/auth"
)

// browser is the headers of a browser without a token.
var browser = []string{"Authorization", "", "Accept", "text/html,*/*"}

func (h *harness) login(form url.Values, hs ...string) answer {
	h.Helper()
	return h.do("POST", "/login", form.Encode(), append(append(hs, browser...), "Content-Type",
		"application/x-www-form-urlencoded")...)
}

// cookieValue logs in and returns the cookie.
func (h *harness) cookieValue() string {
	h.Helper()
	for _, c := range h.login(url.Values{"token": {token}}).Cookies() {
		return c.Value
	}
	h.Fatal("the login sets no cookie")
	return ""
}

func (h *harness) cookie() []string {
	return append([]string{"Cookie", auth.CookieName + "=" + h.cookieValue()}, browser...)
}

func (h *harness) redirects(a answer, to string) {
	h.Helper()
	if a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != to {
		h.Errorf("%s: %s to %q, want %q", a.Request.URL, a.Status, a.Header.Get("Location"), to)
	}
}

// A browser follows a link from Slack without the cookie. The response makes it repeat the request by itself, with the
// cookie.
func TestBrowsersComeAgainByTheLogin(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	const to = "/login?next=%2Ftasks%2Fx%3Fa%3Db%26c"
	a := h.get("/tasks/x?a=b&c", browser...)
	h.contains(a, http.StatusUnauthorized, `href="`+to+`"`)
	if got := a.Header.Get("Refresh"); got != "0; url="+to {
		t.Errorf("refresh %q", got)
	}
	h.redirects(h.get(to, h.cookie()...), "/tasks/x?a=b&c")
	h.contains(h.get(to, browser...), http.StatusOK, `action="/login"`, `value="/tasks/x?a=b&amp;c"`)
	// An action is not repeated, and the page says so.
	a = h.do("POST", "/tasks/x/cancel", "", append([]string{"Referer", h.server.URL + "/tasks/x?a=b"}, browser...)...)
	h.contains(a, http.StatusUnauthorized, "was not done", `href="/login?next=%2Ftasks%2Fx%3Fa%3Db"`)
	if got := a.Header.Get("Refresh"); got != "" {
		t.Errorf("after a refused action: refresh %q", got)
	}
	if got := h.get("/api/tasks", "Authorization", "").Header.Get("Refresh"); got != "" {
		t.Errorf("a program is redirected to %q", got)
	}
}

// A session's ID has 256 random bits.
var sessionCookie = regexp.MustCompile("^" + auth.CookieName +
	`=[\w-]{43}; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict$`)

func TestLogin(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	bad := h.login(url.Values{"token": {"wrong"}, "next": {`/x"><script>`}})
	h.contains(bad, http.StatusUnauthorized, "This token is wrong.", "!<script>")
	if bad.Header.Get("Set-Cookie") != "" {
		t.Error("a wrong token became a cookie")
	}
	for next, want := range map[string]string{
		"/tasks/x?a=b": "/tasks/x?a=b", "": "/", "https://elsewhere.test/x": "/x", "//elsewhere.test/x": "/x",
		"/\\elsewhere.test": "/%5Celsewhere.test", "///elsewhere.test": "/elsewhere.test", "javascript:alert(1)": "/",
		"%zz": "/",
	} {
		a := h.login(url.Values{"token": {token}, "next": {next}})
		h.redirects(a, want)
		if got := a.Header.Get("Set-Cookie"); !sessionCookie.MatchString(got) {
			t.Errorf("next %q: cookie %q", next, got)
		}
		h.redirects(h.get("/login?"+url.Values{"next": {next}}.Encode(), h.cookie()...), want)
	}
	h.redirects(h.login(url.Values{"token": {" " + token + "\t"}}), "/") // as it was copied
	secure := h.login(url.Values{"token": {token}}, "X-Forwarded-Proto", "https")
	if !strings.Contains(secure.Header.Get("Set-Cookie"), "; Secure") {
		t.Errorf("behind TLS the cookie is %q", secure.Header.Get("Set-Cookie"))
	}
	h.contains(h.login(url.Values{"token": {token}}, "Origin", "https://elsewhere.test"), http.StatusForbidden)
}

// Histories and proxy logs keep addresses, so a token in an address is not accepted.
func TestTokenInAnAddressOpensNothing(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for _, path := range []string{
		"/?token=" + token, "/login?token=" + token, "/login?once=" + token, "/api/tasks?token=" + token,
	} {
		if a := h.get(path, "Authorization", ""); a.StatusCode != http.StatusUnauthorized ||
			a.Header.Get("Set-Cookie") != "" {
			t.Errorf("%s: %s, cookie %q", path, a.Status, a.Header.Get("Set-Cookie"))
		}
	}
}

func TestInvitationOpensOnce(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	invite := h.handler.Invite()
	// HEAD requests, which link previews send, do not consume the invitation.
	h.do("HEAD", invite, "", browser...)
	first := h.get(invite, browser...)
	h.redirects(first, "/")
	if got := first.Header["Set-Cookie"]; len(got) != 1 || !sessionCookie.MatchString(got[0]) {
		t.Errorf("cookies %v", got)
	}
	second := h.get(invite, browser...)
	h.contains(second, http.StatusUnauthorized, "has been used", `action="/login"`)
	if len(second.Cookies()) > 0 {
		t.Error("it opened twice")
	}
	h.redirects(h.get(invite, h.cookie()...), "/") // a visitor who is logged in

	invite = h.handler.Invite()
	h.problem(h.get("/?"+strings.TrimPrefix(invite, "/login?"), "Authorization", ""), http.StatusUnauthorized)
}
