// Package auth decides who may use the console and its API: holders of the console token or an API token, people who
// have logged in at an OpenID provider or at GitHub, people whom a trusted reverse proxy names, and the guest of a
// signed link, who sees one task. It records what they change.
//
// A visitor has a role: the holder of the console token is an admin, and people have the roles that Access grants them.
// The package does not limit attempts to guess the token, which must therefore be long and random. A Guard may be used
// from any number of goroutines.
package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/web/internal/respond"
)

// Config configures a Guard. Everything from Store on is required.
type Config struct {
	Token    string // the console token: printable ASCII without space, quotes, comma, semicolon and backslash
	Proxy    Proxy
	Access   *Access   // what people may do; nil: those whom the proxy names may do everything
	Provider *Provider // where people log in; nil: only with the console token
	Links    *Links    // nil: links do not open their tasks

	Store  *store.Store
	Audit  *Audit
	Tokens *Tokens

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
		return nil,
			errors.New("web: the token has a character that a cookie cannot carry: use letters, " +
				"digits, dash and underscore")
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

// Authenticated passes requests of known visitors on, with their [people.Visitor]. Others get the login page or a
// problem. role returns the role that a request needs; a request without one is refused. Requests that may change
// something are recorded, also if they are refused.
func (g *Guard) Authenticated(next http.Handler, role func(*http.Request) (policy.Role, bool)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, ok, err := g.visitor(r)
		need, declared := role(r)
		switch {
		case err != nil:
			g.Out.Fail(w, r, err)
		case r.Method == http.MethodGet && r.URL.Query().Has(linkParam):
			g.openLink(w, r)
		case !ok, v.Role == policy.Guest && need > policy.Guest:
			g.refuse(w, r)
		default:
			checked := next
			if denied := denial(v, need, declared); denied != "" {
				checked = g.Out.Handle(func(http.ResponseWriter, *http.Request) error {
					return respond.Error(http.StatusForbidden, "Not allowed", denied)
				})
			}
			ctx := desk.WithAnswer(people.WithVisitor(r.Context(), v))
			g.Audit.Recorded(checked).ServeHTTP(w, r.WithContext(ctx))
		}
	})
}

// denial says why a visitor may not make a request, or returns "".
func denial(v people.Visitor, need policy.Role, declared bool) string {
	switch {
	case !declared:
		return "This address is closed to everyone: it has no role."
	case v.Role == policy.Anyone:
		return v.Name + " is known but has no role. An operator can give one under roles: in errand.yaml."
	}
	return policy.Decide(policy.Subject{Role: v.Role}, policy.Needs(need), policy.Object{}, policy.Posture{}).Reason
}

// visitor returns who makes a request, and whether they are known: the person whom the proxy names, the holder of a
// token, whose session the browser has, or the guest of a link.
func (g *Guard) visitor(r *http.Request) (v people.Visitor, ok bool, err error) {
	if id, ok := g.Proxy.identity(r); ok {
		if len(g.Access.Grants) == 0 {
			return people.Visitor{Name: id.Name, Method: byProxy, Role: policy.Admin}, true, nil
		}
		return g.Access.visitor(id, byProxy, g.Log), true, nil
	}
	if token, ok := bearer(r); ok {
		if equal(token, g.Token) {
			return people.Visitor{Name: people.Console, Method: byToken, Role: policy.Admin}, true, nil
		}
		return g.Tokens.visitor(r.Context(), token)
	}
	if v, ok, err = g.session(r); ok || err != nil {
		return v, ok, err
	}
	v, ok = g.guest(r)
	return v, ok, nil
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
	detail := "Send the console token (ERRAND_CONSOLE_TOKEN) or an API token as Authorization: Bearer."
	if _, sent := bearer(r); sent {
		detail = "The token is wrong, has expired or was revoked. " + detail
	}
	g.Out.Fail(w, r, respond.Error(http.StatusUnauthorized, "Unauthorized", detail))
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
