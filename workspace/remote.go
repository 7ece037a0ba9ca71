package workspace

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// remote is a repository where it comes from, with what opens it.
type remote struct {
	url, username, password string
}

func (w *Workspace) remote(ctx context.Context, repo string) (remote, error) {
	r := remote{url: w.cfg.URL(repo)}
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
	// A line break would be a further line of git's credential protocol.
	if strings.ContainsAny(r.username+r.password, "\n\r\x00") {
		return remote{}, errors.New("the credential holds a line break")
	}
	return r, nil
}

// helper answers git from its own environment. printf is built into sh, so the secret is in no command line.
const helper = `!f() { test "$1" = get && printf 'username=%s\npassword=%s\n' "$ERRAND_GIT_USERNAME" "$ERRAND_GIT_PASSWORD"; }; f`

// with is g for the processes that talk to r: the only ones that have the secret, in their environment. The helper is bound to
// the host, so a redirect to another one does not get it.
func (g git) with(r remote) git {
	u, err := url.Parse(r.url)
	if err != nil || u.Host == "" || r.username == "" && r.password == "" {
		return g
	}
	g.conf = append(slices.Clip(g.conf), "credential."+u.Scheme+"://"+u.Host+".helper="+helper)
	g.env = append(slices.Clip(g.env), "ERRAND_GIT_USERNAME="+r.username, "ERRAND_GIT_PASSWORD="+r.password)
	g.secret = r.password
	return g
}
