package auth

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/errand-fleet/errand/forge/github"
)

// A provider that is too slow for the whole login does not answer, whatever the request was.
func TestProviderThatIsSlow(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	p := &Provider{Issuer: server.URL, GitHub: server.URL + "/", HTTP: server.Client()}
	if _, err := github.ReadAccount(ctx, p.GitHub, p.HTTP); !errors.Is(away(err), errAway) {
		t.Errorf("reading the account: %v", err)
	}
	if _, err := p.identify(ctx, "code", attempt{}); !errors.Is(err, errAway) {
		t.Errorf("exchanging the code: %v", err)
	}
}
