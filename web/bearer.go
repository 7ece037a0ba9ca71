package web

import (
	"net/http"
	"strings"
)

// ShowsToken reports whether a request shows the token as Authorization: Bearer. Nobody can show an empty one.
func ShowsToken(r *http.Request, token string) bool {
	scheme, shown, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return token != "" && strings.EqualFold(scheme, "Bearer") && equal(shown, token)
}
