package workspace

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// remote is a repository where it comes from, with what opens it.
type remote struct {
	url, username, password string

	transport http.RoundTripper
	change    *update // what may be pushed; nil: it is only read
}

func (w *Workspace) remote(ctx context.Context, repo string) (remote, error) {
	r := remote{url: w.cfg.URL(repo), transport: w.transport}
	// The URL is in git's arguments and messages.
	if u, err := url.Parse(r.url); err == nil && u.User != nil {
		return remote{}, errors.New("the URL holds a credential")
	}
	if w.cfg.Credential == nil {
		return r, nil
	}
	var err error
	if r.username, r.password, err = w.cfg.Credential(ctx, repo); err != nil {
		return remote{}, fmt.Errorf("credential: %w", err)
	}
	// A colon would end the name early, in the header that carries both; a line break has no place there.
	if strings.ContainsAny(r.username+r.password, "\n\r\x00") || strings.Contains(r.username, ":") {
		return remote{}, errors.New("the credential holds a line break, or its name a colon")
	}
	return r, nil
}
