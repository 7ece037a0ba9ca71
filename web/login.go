package web

import (
	"net/http"
	"net/url"
	"time"
)

// maxForm bounds a login; there is nothing long in one.
const maxForm = 16 << 10

type loginView struct {
	Next string // where to go then: a path of ours
	Why  string // what was wrong with the attempt before
}

// login takes the token from the form and goes on to where the visitor wanted to go.
func (h *Handler) login(w http.ResponseWriter, r *http.Request) {
	// Nobody is known yet, so nobody may take his time.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(10 * time.Second))
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	next, err := url.Parse(r.PostFormValue("next"))
	if err != nil {
		next = &url.URL{Path: "/"}
	}
	if !h.valid(r.PostFormValue("token")) {
		h.page(w, http.StatusUnauthorized, "login", loginView{Next: local(next), Why: "This token is wrong."})
		return
	}
	h.remember(w, r)
	http.Redirect(w, r, local(next), http.StatusSeeOther) //nolint:gosec // local leaves a path on this server
}
