// Package auth decides who may use the console and its API: visitors with the console token, as a bearer token or as
// the cookie of a browser that has logged in, and people whom a trusted reverse proxy names.
//
// A visitor has a role: the holder of the console token is an admin, and people have the roles that Access grants them.
// The package does not limit attempts to guess the token, which must therefore be long and random. A Guard may be used
// from any number of goroutines.
package auth

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/web/internal/respond"
)

// CookieName is the cookie of a browser that has logged in.
const CookieName = "errand_token"

// Config configures a Guard. Token, Out, Now and Log are required.
type Config struct {
	Token  string // the console token: printable ASCII without space, quotes, comma, semicolon and backslash
	Proxy  Proxy
	Access *Access // what people may do; nil: those whom the proxy names may do everything

	Out *respond.Responder
	Now func() time.Time
	Log *slog.Logger
}

// Guard admits visitors. Create one with New.
type Guard struct {
	Config
	invites invites
}

// New returns a guard.
func New(cfg Config) (*Guard, error) {
	token := cfg.Token
	unfit := func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune("\",;\\", r) }
	switch {
	case token == "":
		return nil, errors.New("web: the console needs a token, or it would be open to everyone")
	case strings.ContainsFunc(token, unfit):
		return nil, errors.New("web: the token has a character that a cookie cannot carry: use letters, digits, dash and underscore")
	}
	if cfg.Access == nil {
		cfg.Access = &Access{}
	}
	return &Guard{Config: cfg}, nil
}

// SameOrigin refuses requests that another site makes a browser send. Programs send no Origin header and pass.
func (g *Guard) SameOrigin(next http.Handler) http.Handler {
	p := http.NewCrossOriginProtection()
	p.SetDenyHandler(g.Out.Handle(func(http.ResponseWriter, *http.Request) error {
		return respond.Error(http.StatusForbidden, "Cross-origin request",
			"Another site sent this request. errand accepts requests only from its own pages.")
	}))
	return p.Handler(next)
}

// Authenticated passes requests of known visitors on, with their [tasks.Visitor]. Others get the login page or a
// problem. role returns the role that a request needs; a request without one is refused.
func (g *Guard) Authenticated(next http.Handler, role func(*http.Request) (tasks.Role, bool)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, ok := g.visitor(r)
		need, declared := role(r)
		switch {
		case !ok, v.Role == tasks.Guest && need > tasks.Guest:
			g.refuse(w, r)
		case !declared:
			g.Out.Fail(w, r, respond.Error(http.StatusForbidden, "Closed", "This address is closed to everyone: it has no role."))
		case v.Role == tasks.Anyone:
			g.Out.Fail(w, r, respond.Error(http.StatusForbidden, "No role",
				v.Name+" is known but has no role. An operator can give one under roles: in errand.yaml."))
		case v.Role < need:
			g.Out.Fail(w, r, respond.Error(http.StatusForbidden, "Not allowed",
				fmt.Sprintf("This needs the role %s. Your role is %s.", need, v.Role)))
		default:
			next.ServeHTTP(w, r.WithContext(tasks.WithVisitor(r.Context(), v)))
		}
	})
}

// visitor returns who makes a request, and whether they are known: the person whom the proxy names, or the holder of
// the console token.
func (g *Guard) visitor(r *http.Request) (v tasks.Visitor, ok bool) {
	if id, ok := g.Proxy.identity(r); ok {
		if len(g.Access.Grants) == 0 {
			return tasks.Visitor{Name: id.Name, Method: "proxy", Role: tasks.Admin}, true
		}
		return g.Access.visitor(id, "proxy", g.Log), true
	}
	return tasks.Visitor{Name: tasks.Console, Method: "token", Role: tasks.Admin}, g.authorized(r)
}

func (g *Guard) authorized(r *http.Request) bool {
	if token, ok := bearer(r); ok {
		return equal(token, g.Token)
	}
	return slices.ContainsFunc(r.CookiesNamed(CookieName), func(c *http.Cookie) bool {
		return hmac.Equal([]byte(c.Value), []byte(g.cookie()))
	})
}

// refuse sends browsers to the login and programs a problem.
func (g *Guard) refuse(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("WWW-Authenticate", `Bearer realm="errand"`)
	if respond.WantsHTML(r) {
		if err := g.redirectToLogin(w, r); err != nil {
			g.Out.Fail(w, r, err)
		}
		return
	}
	g.Out.Fail(w, r, respond.Error(http.StatusUnauthorized, "Unauthorized",
		"Send the console token (ERRAND_CONSOLE_TOKEN) as Authorization: Bearer."))
}

// BearerMatches reports whether a request has the token as Authorization: Bearer. An empty token never matches.
func BearerMatches(r *http.Request, token string) bool {
	sent, ok := bearer(r)
	return ok && token != "" && equal(sent, token)
}

func bearer(r *http.Request) (token string, ok bool) {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	return token, ok && strings.EqualFold(scheme, "Bearer")
}

// equal compares in a time that depends on neither content nor length.
func equal(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// cookie returns the value that a browser gets instead of the token. Browsers send a cookie to every port of its host,
// and so also to servers that an agent runs on loopback. The cookie opens the console until the token changes, but does
// not reveal the token.
func (g *Guard) cookie() string {
	mac := hmac.New(sha256.New, []byte(g.Token))
	_, _ = mac.Write([]byte("console cookie")) // a hash never fails
	return hex.EncodeToString(mac.Sum(nil))
}

// setCookie gives the browser the cookie, for this session.
func (g *Guard) setCookie(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // Secure cannot be set without TLS: on loopback
		Name: CookieName, Value: g.cookie(), Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https",
	})
}

// maxForm bounds the body of a login, in bytes.
const maxForm = 16 << 10

// loginView is the login page.
type loginView struct {
	Next string // a local path to go to after the login
	Why  string // why the last attempt failed
}

// LoginPage redirects visitors who are known, by cookie, proxy or invitation, and asks others for the token.
func (g *Guard) LoginPage(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	next, code := localPath(query.Get("next")), query.Get("once")
	v, known := g.visitor(r)
	known = known && v.Role > tasks.Guest
	switch {
	case r.Method == http.MethodGet && code != "" && g.invites.take(code, g.Now()):
		g.setCookie(w, r)
	case known:
	case !respond.WantsHTML(r):
		g.refuse(w, r)
		return nil
	case code != "":
		return g.Out.Page(w, http.StatusUnauthorized, "login", loginView{Next: next, Why: "This link has been used or has expired. It works once, for 15 minutes."})
	default:
		return g.Out.Page(w, http.StatusOK, "login", loginView{Next: next})
	}
	http.Redirect(w, r, next, http.StatusSeeOther) //nolint:gosec // localPath returns a path on this server
	return nil
}

// Login checks the token of the login form.
func (g *Guard) Login(w http.ResponseWriter, r *http.Request) error {
	// The sender is not authenticated yet, so bound how long the body may take.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(10 * time.Second))
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	next := localPath(r.PostFormValue("next"))
	if !equal(r.PostFormValue("token"), g.Token) {
		return g.Out.Page(w, http.StatusUnauthorized, "login", loginView{Next: next, Why: "This token is wrong."})
	}
	g.setCookie(w, r)
	http.Redirect(w, r, next, http.StatusSeeOther) //nolint:gosec // localPath returns a path on this server
	return nil
}

// redirectToLogin sends a browser to the login with a page that refreshes, not with an HTTP redirect. A link followed
// from Slack or GitHub arrives without the cookie, which is SameSite=Strict, and a redirect would still count as that
// link. After the refresh the browser sends the cookie if it has one, and the login redirects it back. This is safe
// because only a GET is repeated: an action of another site has no cookie and is never repeated.
func (g *Guard) redirectToLogin(w http.ResponseWriter, r *http.Request) error {
	next := "/"
	if r.Method == http.MethodGet {
		next = local(r.URL)
	}
	to := "/login?" + url.Values{"next": {next}}.Encode()
	w.Header().Set("Refresh", "0; url="+to)
	return g.Out.Page(w, http.StatusUnauthorized, "enter", struct{ Login string }{to})
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
