package web

import (
	"net/http"
	"net/url"
	"strings"
	"time"
)

// maxForm bounds a login; there is nothing long in one.
const maxForm = 16 << 10

type loginView struct {
	Next string // where to go then: a path of ours
	Why  string // what was wrong with the attempt before
}

// loginPage sends on who may come in: with the cookie, by the proxy's word, or by an invitation, which becomes the cookie. All others
// are asked for the token.
func (h *Handler) loginPage(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	next, code := destination(query.Get("next")), query.Get("once")
	_, known := h.visitor(r)
	switch {
	case r.Method == http.MethodGet && code != "" && h.invites.take(code, h.now()):
		h.remember(w, r)
	case known:
	case !wantsHTML(r):
		h.unauthorized(w, r)
		return
	case code != "":
		h.page(w, http.StatusUnauthorized, "login", loginView{Next: next, Why: "This link has been used, or is too old. It opens the console once."})
		return
	default:
		h.page(w, http.StatusOK, "login", loginView{Next: next})
		return
	}
	http.Redirect(w, r, next, http.StatusSeeOther) //nolint:gosec // destination leaves a path on this server
}

// login takes the token from the form and goes on to where the visitor wanted to go.
func (h *Handler) login(w http.ResponseWriter, r *http.Request) {
	// Nobody is known yet, so nobody may take his time.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(10 * time.Second))
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	next := destination(r.PostFormValue("next"))
	if !h.valid(r.PostFormValue("token")) {
		h.page(w, http.StatusUnauthorized, "login", loginView{Next: next, Why: "This token is wrong."})
		return
	}
	h.remember(w, r)
	http.Redirect(w, r, next, http.StatusSeeOther) //nolint:gosec // destination leaves a path on this server
}

// enterView is the page on the way to the login.
type enterView struct{ Login string }

// enter sends a browser to the login, by a page of ours and not by a redirect. A link that was followed from Slack or GitHub comes
// without the cookie, which is SameSite=Strict, and a redirect would still be that link's; from our page the browser comes by itself,
// with the cookie if it has one, and the login sends it back. What makes this safe is that only a visitor's look at a page is repeated:
// an action of another site has no cookie here and is never repeated.
func (h *Handler) enter(w http.ResponseWriter, r *http.Request) {
	next := "/"
	if r.Method == http.MethodGet {
		next = local(r.URL)
	}
	to := "/login?" + url.Values{"next": {next}}.Encode()
	w.Header().Set("Refresh", "0; url="+to)
	h.page(w, http.StatusUnauthorized, "enter", enterView{to})
}

// destination is where a visitor says to have wanted to go, as a path of ours; the list of tasks if that makes no sense.
func destination(next string) string {
	u, err := url.Parse(next)
	if err != nil {
		return "/"
	}
	return local(u)
}

// local is a URL as a path on this server, whatever it says about hosts.
func local(u *url.URL) string {
	to := url.URL{Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery}
	return "/" + strings.TrimLeft(to.RequestURI(), "/\\")
}
