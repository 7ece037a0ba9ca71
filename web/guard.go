package web

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/tasks"
)

// cookieName is the cookie of a browser that has shown the token.
const cookieName = "errand_token"

// open reports whether a pattern of the mux is served without a token: ours that say nothing, such as how a login looks, and what
// guards itself.
func (h *Handler) open(pattern string) bool {
	switch pattern {
	case "GET /livez", "GET /readyz", "GET /static/":
		return true
	}
	_, path, ok := strings.Cut(pattern, "/") // behind method and host
	return ok && slices.ContainsFunc(h.cfg.Open, func(prefix string) bool { return strings.HasPrefix("/"+path, prefix) })
}

// protect refuses what another site makes a browser send. Programs send no Origin and pass.
func (h *Handler) protect(next http.Handler) http.Handler {
	p := http.NewCrossOriginProtection()
	p.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.fail(w, r, problem{Status: http.StatusForbidden, Title: "Cross-origin request", Detail: "Another site sent this; errand acts only on its own pages."})
	}))
	return p.Handler(next)
}

// guard lets pass who has the token, in the Authorization header or as the cookie, and who comes by the proxy. Whoever acts then is
// known to the handlers by [tasks.Actor].
func (h *Handler) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := h.mux.Handler(r); pattern == "GET /login" || pattern == "POST /login" {
			next.ServeHTTP(w, r) // it looks by itself
			return
		}
		who, ok := h.visitor(r)
		if !ok {
			h.unauthorized(w, r)
			return
		}
		next.ServeHTTP(w, r.WithContext(tasks.WithActor(r.Context(), who)))
	})
}

// visitor is who asks; false when nobody vouches for them.
func (h *Handler) visitor(r *http.Request) (name string, ok bool) {
	if name := h.cfg.Proxy.person(r); name != "" {
		return name, true
	}
	return tasks.Console, h.authorized(r)
}

func (h *Handler) authorized(r *http.Request) bool {
	if token, ok := bearer(r); ok {
		return h.valid(token)
	}
	return slices.ContainsFunc(r.CookiesNamed(cookieName), func(c *http.Cookie) bool {
		return hmac.Equal([]byte(c.Value), []byte(h.pass()))
	})
}

// pass is what the browser gets instead of the token. A cookie goes to every port of its host, so what an agent serves on loopback sees
// it as well; it opens the console until the token changes, but it is not the token.
func (h *Handler) pass() string {
	mac := hmac.New(sha256.New, []byte(h.cfg.Token))
	_, _ = mac.Write([]byte("console cookie")) // a hash takes everything
	return hex.EncodeToString(mac.Sum(nil))
}

func (h *Handler) valid(token string) bool { return equal(token, h.cfg.Token) }

// equal compares in a time that depends on neither content nor length.
func equal(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// remember gives the browser the cookie, for as long as it runs.
func (h *Handler) remember(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // Secure cannot be set where there is no TLS: on loopback
		Name: cookieName, Value: h.pass(), Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https",
	})
}

// unauthorized asks for the token: people by the login, programs by a problem.
func (h *Handler) unauthorized(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("WWW-Authenticate", `Bearer realm="errand"`)
	if wantsHTML(r) {
		h.enter(w, r)
		return
	}
	h.problem(w, problem{
		Status: http.StatusUnauthorized, Title: "Unauthorized",
		Detail: "Send the console's token (ERRAND_CONSOLE_TOKEN) as Authorization: Bearer.",
	})
}

func wantsHTML(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "text/html") }
