package workspace

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// remote is the origin of a repository, with the credential for it.
type remote struct {
	url, username, password string

	transport http.RoundTripper
	change    *update // the change that may be pushed; nil: read only
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
	// The header that carries both would end the name at a colon, and cannot contain a line break.
	if strings.ContainsAny(r.username+r.password, "\n\r\x00") || strings.Contains(r.username, ":") {
		return remote{}, errors.New("the credential holds a line break, or its name a colon")
	}
	return r, nil
}

// push moves a branch of the remote to commit if it still is at was ("": it does not exist). The remote compares, so
// no other commits are lost.
func (m mirror) push(ctx context.Context, r remote, commit, branch, was string) error {
	ref := "refs/heads/" + branch
	r.change = &update{from: was, to: commit, ref: ref}
	_, err := m.git.remotely(ctx, r, "push", "--quiet", "--no-verify", "--no-signed", "--no-follow-tags", "--recurse-submodules=no",
		"--force-with-lease="+ref+":"+was, "--", r.url, commit+":"+ref)
	return pushError(err)
}

// maxRefusal bounds the quoted part of the remote's message.
const maxRefusal = 500

// pushError classifies the failure of a push. The phrases are those of git 2.31 to 2.50 (transport.c). The text in
// brackets and the lines "remote: " are the remote's.
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
