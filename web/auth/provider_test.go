package auth

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-github/v60/github"
)

// A provider that is too slow for the whole login does not answer, whatever the request was.
func TestProviderThatIsSlow(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	p := &Provider{Issuer: server.URL, GitHub: server.URL + "/", HTTP: server.Client()}
	if _, err := p.askGitHub(ctx, p.HTTP); !errors.Is(err, errAway) {
		t.Errorf("reading the account: %v", err)
	}
	if _, err := p.identify(ctx, "code", attempt{}); !errors.Is(err, errAway) {
		t.Errorf("exchanging the code: %v", err)
	}
}

// A list that does not end does not hold a login for ever.
func TestPagesAreBounded(t *testing.T) {
	t.Parallel()
	read := 0
	all, err := pages(t.Context(), "lines",
		func(_ context.Context, o *github.ListOptions) ([]int, *github.Response, error) {
			read++
			return []int{o.Page}, &github.Response{NextPage: o.Page + 1}, nil
		})
	if err != nil || read != maxPages || len(all) != maxPages {
		t.Errorf("%d pages were read: %v, %v", read, all, err)
	}
}
