package auth

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/web/internal/respond"
)

// attemptCookie binds a login at the provider to the browser that began it. It is SameSite=Lax, because the provider
// sends the browser back.
const attemptCookie = "errand_login"

// attemptTime is how long a person may take at the provider.
const attemptTime = 10 * time.Minute

// maxNext bounds the path that a login leads to, in bytes: browsers drop a cookie of more than 4 KB.
const maxNext = 1500

// attempt is a login at the provider that has begun. It is kept in the browser, signed, so that strangers cannot fill
// Redis with attempts.
type attempt struct {
	State    string    `json:"state"`
	Nonce    string    `json:"nonce"`
	Verifier string    `json:"verifier"`
	Next     string    `json:"next"`
	Until    time.Time `json:"until"`
}

// StartLogin sends the browser to the provider.
func (g *Guard) StartLogin(w http.ResponseWriter, r *http.Request) error {
	if g.Provider == nil {
		return respond.Error(http.StatusNotFound, "No login", "No provider is configured under login: in errand.yaml.")
	}
	a := attempt{
		State: secret(), Nonce: secret(), Verifier: oauth2.GenerateVerifier(),
		Next: localPath(r.URL.Query().Get("next")), Until: g.Now().Add(attemptTime),
	}
	if len(a.Next) > maxNext {
		a.Next = "/"
	}
	ctx, cancel := context.WithTimeout(r.Context(), providerTime)
	defer cancel()
	to, err := g.Provider.address(ctx, a)
	if err != nil {
		return g.refuseLogin(w, r, a.Next, err)
	}
	body, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("marshal login: %w", err)
	}
	text := base64.RawURLEncoding.EncodeToString(body)
	setCookie(w, r, http.Cookie{
		Name: attemptCookie, Value: text + "." + g.sign("login", text), Path: "/", MaxAge: int(attemptTime.Seconds()),
		SameSite: http.SameSiteLaxMode,
	})
	http.Redirect(w, r, to, http.StatusSeeOther)
	return nil
}

// refuseLogin shows the login page again. The reason is in the log: it may be about a stranger.
func (g *Guard) refuseLogin(w http.ResponseWriter, r *http.Request, next string, err error) error {
	g.Log.Warn("login at the provider failed", "from", g.Proxy.address(r), "err", err)
	if errors.Is(err, errAway) {
		return g.loginPage(w, r, http.StatusServiceUnavailable, next, g.Provider.name()+
			" does not answer as it should. Try again in a minute. If that does not help, an operator finds the "+
			"reason in the log of the front door, and checks login: in errand.yaml.")
	}
	return g.loginPage(w, r, http.StatusUnauthorized, next,
		"The login at "+g.Provider.name()+" did not work. Try again; the log of the front door has the reason.")
}

// attempted returns the attempt that the browser began, if the provider's state belongs to it.
func (g *Guard) attempted(r *http.Request) (a attempt, err error) {
	for _, value := range cookies(r, attemptCookie) {
		text, signature, _ := strings.Cut(value, ".")
		body, err := base64.RawURLEncoding.DecodeString(text)
		if err == nil && equal(signature, g.sign("login", text)) && json.Unmarshal(body, &a) == nil &&
			equal(a.State, r.URL.Query().Get("state")) && g.Now().Before(a.Until) {
			return a, nil
		}
	}
	return attempt{Next: "/"}, fmt.Errorf("this browser did not begin the login, or more than %s ago", attemptTime)
}

// Callback completes a login: the provider has sent the browser back with a code. Each state counts once.
func (g *Guard) Callback(w http.ResponseWriter, r *http.Request) error {
	if g.Provider == nil {
		return respond.Error(http.StatusNotFound, "No login", "No provider is configured under login: in errand.yaml.")
	}
	w.Header().Set("Referrer-Policy", "no-referrer") // the address has the code
	setCookie(w, r, http.Cookie{Name: attemptCookie, Path: "/", MaxAge: -1, SameSite: http.SameSiteLaxMode})
	a, err := g.attempted(r)
	if err != nil {
		return g.refuseLogin(w, r, a.Next, err)
	}
	if refused := r.URL.Query().Get("error"); refused != "" {
		return g.refuseLogin(w, r, a.Next, fmt.Errorf("the provider refused: %.100q", refused))
	}
	ctx, cancel := context.WithTimeout(r.Context(), providerTime)
	defer cancel()
	id, err := g.Provider.identify(ctx, r.URL.Query().Get("code"), a)
	if err != nil {
		return g.refuseLogin(w, r, a.Next, err)
	}
	first, err := g.Store.Logins.Once(r.Context(), g.sign("state", a.State), attemptTime)
	if err != nil {
		return err
	}
	if !first {
		return g.refuseLogin(w, r, a.Next, fmt.Errorf("the login was used before"))
	}
	s := session{Identity: id, Method: byLogin, Issuer: g.Provider.Issuer}
	// At a provider that is open to everyone, people without a role would fill Redis and the audit log.
	if v, _ := g.person(s); v.Role == policy.Anyone && !g.linking(r.Context(), a.Next) {
		g.Log.Warn("login of a person without a role", "from", g.Proxy.address(r), "who", v.Name)
		return g.loginPage(w, r, http.StatusForbidden, a.Next, denial(v, policy.Viewer, true))
	}
	if err := g.startSession(w, r, s); err != nil {
		return err
	}
	return g.comeAgain(w, r, http.StatusOK, a.Next)
}
