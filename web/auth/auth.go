// Package auth decides who may use the console and its API: visitors with the console token, as a bearer token or as
// the cookie of a browser that has logged in, and people whom a trusted reverse proxy names.
//
// Every visitor it admits may do everything; it does not distinguish rights. It does not limit attempts to guess the
// token, which must therefore be long and random. A Guard may be used from any number of goroutines.
package auth

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/web/internal/respond"
)

// CookieName is the cookie of a browser that has logged in.
const CookieName = "errand_token"

// Guard admits visitors. Create one with New.
type Guard struct {
	token   string
	proxy   Proxy
	out     *respond.Responder
	now     func() time.Time
	invites invites
}

// New returns a guard for a token, which must be fit for a cookie.
func New(token string, proxy Proxy, out *respond.Responder, now func() time.Time) (*Guard, error) {
	unfit := func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune("\",;\\", r) }
	switch {
	case token == "":
		return nil, errors.New("web: the console needs a token, or it would be open to everyone")
	case strings.ContainsFunc(token, unfit):
		return nil, errors.New("web: the token has a character that a cookie cannot carry: use letters, digits, dash and underscore")
	}
	return &Guard{token: token, proxy: proxy, out: out, now: now}, nil
}

// SameOrigin refuses requests that another site makes a browser send. Programs send no Origin header and pass.
func (g *Guard) SameOrigin(next http.Handler) http.Handler {
	p := http.NewCrossOriginProtection()
	p.SetDenyHandler(g.out.Handle(func(http.ResponseWriter, *http.Request) error {
		return respond.Error(http.StatusForbidden, "Cross-origin request",
			"Another site sent this request. errand accepts requests only from its own pages.")
	}))
	return p.Handler(next)
}

// Authenticated passes requests of known visitors on, with the visitor's name as [tasks.Actor]. Others get the login
// page or a problem.
func (g *Guard) Authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, ok := g.visitor(r)
		if !ok {
			g.refuse(w, r)
			return
		}
		next.ServeHTTP(w, r.WithContext(tasks.WithActor(r.Context(), name)))
	})
}

// visitor returns the name of the visitor: the one the proxy states, or else the console's.
func (g *Guard) visitor(r *http.Request) (name string, ok bool) {
	if name := g.proxy.person(r); name != "" {
		return name, true
	}
	return tasks.Console, g.authorized(r)
}

func (g *Guard) authorized(r *http.Request) bool {
	if token, ok := bearer(r); ok {
		return equal(token, g.token)
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
			g.out.Fail(w, r, err)
		}
		return
	}
	g.out.Fail(w, r, respond.Error(http.StatusUnauthorized, "Unauthorized",
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
	mac := hmac.New(sha256.New, []byte(g.token))
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
