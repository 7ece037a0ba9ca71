package web

import (
	"net/http"
	"strings"
)

// ShowsToken reports whether a request shows the token as Authorization: Bearer. Nobody can show an empty one.
func ShowsToken(r *http.Request, token string) bool {
	shown, ok := bearer(r)
	return ok && token != "" && equal(shown, token)
}

// bearer is the token that a request shows, if it shows one.
func bearer(r *http.Request) (token string, ok bool) {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	return token, ok && strings.EqualFold(scheme, "Bearer")
}
