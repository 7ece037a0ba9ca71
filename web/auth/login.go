package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/web/internal/respond"
)

// maxForm bounds the body of a login, in bytes.
const maxForm = 16 << 10

// loginView is the login page.
type loginView struct {
	Next     string // a local path to go to after the login
	Purpose  string // why the visitor is here
	Why      string // why the last attempt failed
	Provider string // where people log in; empty: only with the token
	Token    bool   // the last attempt was with a token
}

// LoginPage redirects visitors who are known, by cookie, proxy or invitation, and asks others for the token.
func (g *Guard) LoginPage(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	next, code := localPath(query.Get("next")), query.Get("once")
	v, known, err := g.visitor(r)
	switch {
	case err != nil:
		return err
	case r.Method == http.MethodGet && code != "" && g.invites.take(code, g.Now()):
		if err := g.startSession(w, r, session{Method: byInvite}); err != nil {
			return err
		}
	case known && v.Role > policy.Guest:
	case !respond.WantsHTML(r):
		g.refuse(w, r)
		return nil
	case code != "":
		return g.loginPage(w, r, http.StatusUnauthorized, next,
			"This link has been used or has expired. It works once, for 15 minutes.")
	default:
		return g.loginPage(w, r, http.StatusOK, next, "")
	}
	http.Redirect(w, r, next, http.StatusSeeOther) //nolint:gosec // localPath returns a path on this server
	return nil
}

// boundForm bounds how long and how large the body of a sender may be who may not be authenticated.
func boundForm(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(10 * time.Second))
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
}

// Login checks the token of the login form.
func (g *Guard) Login(w http.ResponseWriter, r *http.Request) error {
	boundForm(w, r)
	next := localPath(r.PostFormValue("next"))
	if !equal(strings.TrimSpace(r.PostFormValue("token")), g.Token) {
		g.Log.Warn("login with a wrong token", "from", g.Proxy.address(r))
		return g.loginPage(w, r, http.StatusUnauthorized, next, "This token is wrong.")
	}
	if err := g.startSession(w, r, session{Method: byToken}); err != nil {
		return err
	}
	http.Redirect(w, r, next, http.StatusSeeOther) //nolint:gosec // localPath returns a path on this server
	return nil
}

// loginPage shows the link to the provider and the form.
func (g *Guard) loginPage(w http.ResponseWriter, r *http.Request, status int, next, why string) error {
	v := loginView{
		Next: next, Why: why, Token: r.Method == http.MethodPost, Purpose: "to continue to the page that you opened.",
	}
	switch path, _, _ := strings.Cut(next, "?"); {
	case path == "/":
		v.Purpose = "to see and start tasks."
	case strings.HasPrefix(path, "/tasks/"):
		v.Purpose = "to see this task and act on it."
	}
	if g.Provider != nil {
		v.Provider = g.Provider.name()
	}
	return g.Out.Page(w, r, status, "login", v)
}

// redirectToLogin sends a browser to the login with a page that refreshes, not with an HTTP redirect. A link followed
// from Slack or GitHub arrives without the cookie, which is SameSite=Strict, and a redirect would still count as that
// link. After the refresh the browser sends the cookie if it has one, and the login redirects it back. This is safe
// because only a GET is repeated: an action of another site has no cookie and is never repeated. After another request
// the page says that it was not done, and the login leads back to where it was made.
func (g *Guard) redirectToLogin(w http.ResponseWriter, r *http.Request) error {
	to := func(next string) string { return "/login?" + url.Values{"next": {next}}.Encode() }
	if r.Method == http.MethodGet {
		return g.comeAgain(w, r, http.StatusUnauthorized, to(local(r.URL)))
	}
	return g.Out.Page(w, r, http.StatusUnauthorized, "enter", enterView{to(localPath(r.Referer())), true})
}

// enterView is the page on the way to another one.
type enterView struct {
	To   string
	Lost bool // something was sent, and not done
}

// comeAgain sends a page that makes a browser go to a local path by itself, with the cookies that it sends only for
// links on this site.
func (g *Guard) comeAgain(w http.ResponseWriter, r *http.Request, status int, to string) error {
	w.Header().Set("Refresh", "0; url="+to)
	return g.Out.Page(w, r, status, "enter", enterView{To: to})
}

// localPath returns the path of a URL that the visitor sent, or "/" if it cannot be parsed.
func localPath(next string) string {
	u, err := url.Parse(next)
	if err != nil {
		return "/"
	}
	return local(u)
}

// local returns a URL as a path on this server, without scheme and host.
func local(u *url.URL) string {
	to := url.URL{Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery}
	return "/" + strings.TrimLeft(to.RequestURI(), "/\\")
}

// inviteTime is how long an invitation is valid.
const inviteTime = 15 * time.Minute

// invites are links that open the console once. They are valid in this process only.
type invites struct {
	mu    sync.Mutex
	until map[[sha256.Size]byte]time.Time // by hash, so that the time of a lookup reveals nothing about a code
}

// Invite returns a path that opens the console once, within 15 minutes. Unlike the token it may be part of an address,
// which browser histories and proxy logs keep: it is worthless once used.
func (g *Guard) Invite() (path string) {
	code := rand.Text()
	g.invites.add(code, g.Now())
	return "/login?once=" + code
}

func (i *invites) add(code string, now time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.until == nil {
		i.until = map[[sha256.Size]byte]time.Time{}
	}
	i.until[sha256.Sum256([]byte(code))] = now.Add(inviteTime)
}

// take consumes a code and reports whether it was valid.
func (i *invites) take(code string, now time.Time) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	key := sha256.Sum256([]byte(code))
	until, ok := i.until[key]
	delete(i.until, key)
	return ok && now.Before(until)
}
