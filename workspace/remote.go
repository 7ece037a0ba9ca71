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

// push makes a branch of the remote that commit, if it still is where it was ("": there was none). Nobody else's
// commits are lost: the remote compares.
func (m mirror) push(ctx context.Context, r remote, commit, branch, was string) error {
	ref := "refs/heads/" + branch
	r.change = &update{from: was, to: commit, ref: ref}
	_, err := m.git.remotely(ctx, r, "push", "--quiet", "--no-verify", "--no-signed", "--no-follow-tags", "--recurse-submodules=no",
		"--force-with-lease="+ref+":"+was, "--", r.url, commit+":"+ref)
	return pushError(err)
}

// maxRefusal is how much of the remote's words is repeated.
const maxRefusal = 500

// pushError finds out what a remote did not like. The phrases are those of git 2.31 to 2.50 (transport.c); what stands
// in brackets is the remote's, and so are the lines "remote: ".
func pushError(err error) error {
	refused, ok := errors.AsType[*gitError](err)
	if !ok {
		return err
	}
	reason, said := "", ""
	for line := range strings.Lines(refused.stderr) {
		line = strings.TrimSpace(strings.Map(printable, line))
		if words, found := strings.CutPrefix(line, "remote:"); found {
			said = strings.TrimSpace(said + " " + strings.Trim(words, " -"))
		}
		if strings.HasPrefix(line, "! [") {
			if _, after, found := strings.Cut(line, " ("); found {
				reason = strings.TrimSuffix(after, ")")
			}
		}
	}
	switch {
	case reason == "stale info", reason == "fetch first", reason == "non-fast-forward":
		return fmt.Errorf("%w: it has just moved", ErrForeign)
	case reason != "" && said != "":
		reason += ": " + said
	case reason == "":
		return remoteError(err)
	}
	return fmt.Errorf("%w: %s", ErrRejected, strings.ToValidUTF8(reason[:min(len(reason), maxRefusal)], ""))
}
