package github

import (
	"net/http"
	"strings"

	"github.com/google/go-github/v60/github"
)

// tokenRefusals makes an error of an answer that refuses the App a token, as go-github does of all others: ghinstallation would not read what
// it says, and leave it open.
type tokenRefusals struct{ http.RoundTripper }

// RoundTrip returns the errors of github.CheckResponse.
func (t tokenRefusals) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.RoundTripper.RoundTrip(r)
	if err != nil || !strings.HasSuffix(r.URL.Path, "/access_tokens") {
		return resp, err
	}
	if err := github.CheckResponse(resp); err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	return resp, nil
}
