package auth

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
)

// CookieName is the cookie of a browser that has logged in. Its value is the ID of a session. Over HTTPS the name
// begins with [hostPrefix].
const CookieName = "errand_token"

// hostPrefix makes browsers accept a cookie only from this host over HTTPS, so that neither another host of the domain
// nor a connection in plain text can put its own session into a browser.
const hostPrefix = "__Host-"

// sessionTime is how long a login lasts.
const sessionTime = 12 * time.Hour

// The ways to authenticate, as the audit log names them.
const (
	byToken    = "token"  // the console token
	byInvite   = "invite" // an invitation
	byLogin    = "login"  // a login at the provider
	byProxy    = "proxy"  // a trusted proxy
	byAPIToken = "api token"
	byLink     = "link" // a signed link
)

// session is who a browser is, as stored.
type session struct {
	Identity
	Method string `json:"method"`
	Issuer string `json:"issuer,omitempty"` // the provider that stated the identity
}

// secret returns 256 random bits as text.
func secret() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // it never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

// sign returns a code for a text that only a holder of the console token can compute. A purpose separates the codes.
func (g *Guard) sign(purpose, text string) string {
	mac := hmac.New(sha256.New, []byte(g.Token))
	_, _ = mac.Write([]byte(purpose + "\n" + text)) // a hash never fails
	return hex.EncodeToString(mac.Sum(nil))
}

// startSession logs a browser in and ends its earlier session. The session's ID is new, so that an ID which someone
// else put into the browser is worth nothing. Redis has a hash of it, and a new console token ends all sessions.
func (g *Guard) startSession(w http.ResponseWriter, r *http.Request, s session) error {
	body, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("marshal session: %w", err)
	}
	g.dropSessions(r)
	id := secret()
	if err := g.Store.Logins.Save(r.Context(), g.sign("session", id), body, sessionTime); err != nil {
		return err
	}
	setCookie(w, r, http.Cookie{
		Name: CookieName, Value: id, Path: "/", MaxAge: int(sessionTime.Seconds()), SameSite: http.SameSiteStrictMode,
	})
	v, _ := g.person(s)
	g.Audit.record(r, v, "login", http.StatusOK, "")
	return nil
}

// setCookie sets a cookie that scripts cannot read. Its name has the prefix if its path permits that.
func setCookie(w http.ResponseWriter, r *http.Request, c http.Cookie) {
	c.HttpOnly, c.Secure = true, secure(r)
	if c.Secure && c.Path == "/" {
		c.Name = hostPrefix + c.Name
	}
	http.SetCookie(w, &c)
}

// secure reports whether the browser sent a request over HTTPS.
func secure(r *http.Request) bool {
	return r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https"
}

// maxCookies bounds how many cookies of one name count: each costs a request to Redis.
const maxCookies = 4

// cookies returns the values of a cookie that setCookie has set with the path "/".
func cookies(r *http.Request, name string) (values []string) {
	if secure(r) {
		name = hostPrefix + name
	}
	for _, c := range r.CookiesNamed(name) {
		if len(values) < maxCookies {
			values = append(values, c.Value)
		}
	}
	return values
}

// session returns the visitor whose session a browser has.
func (g *Guard) session(r *http.Request) (v people.Visitor, ok bool, err error) {
	b, ok, err := g.browser(r)
	return b.visitor, ok, err
}

// browser is a browser that has logged in.
type browser struct {
	session
	id      string // of the session
	visitor people.Visitor
}

func (g *Guard) browser(r *http.Request) (b browser, ok bool, err error) {
	for _, id := range cookies(r, CookieName) {
		body, err := g.Store.Logins.Read(r.Context(), g.sign("session", id))
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		b = browser{id: id}
		if err != nil || json.Unmarshal(body, &b.session) != nil {
			return b, false, err
		}
		if b.visitor, ok = g.person(b.session); ok {
			b.visitor.Session = true
			return b, true, nil
		}
	}
	return browser{}, false, nil
}

// person returns the visitor of a session with the roles of now. A session does not count if its provider is no longer
// where people log in.
func (g *Guard) person(s session) (v people.Visitor, ok bool) {
	if s.Method == byLogin {
		return g.Access.visitor(s.Identity, byLogin, g.Log), g.Provider != nil && s.Issuer == g.Provider.Issuer
	}
	return people.Visitor{Name: people.Console, Method: s.Method, Role: policy.Admin}, true
}

// dropSessions ends the sessions that a browser has.
func (g *Guard) dropSessions(r *http.Request) {
	for _, id := range cookies(r, CookieName) {
		if err := g.Store.Logins.Drop(r.Context(), g.sign("session", id)); err != nil {
			g.Log.Warn("end session", "err", err) // it ends by itself
		}
	}
}

// Logout ends the browser's session.
func (g *Guard) Logout(w http.ResponseWriter, r *http.Request) error {
	v, known, err := g.session(r)
	if err != nil {
		return err
	}
	g.dropSessions(r)
	setCookie(w, r, http.Cookie{Name: CookieName, Path: "/", MaxAge: -1, SameSite: http.SameSiteStrictMode})
	if known {
		g.Audit.record(r, v, "logout", http.StatusOK, "")
	}
	http.Redirect(w, r, "/login", http.StatusSeeOther)
	return nil
}
