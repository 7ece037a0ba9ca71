package workspace

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// push makes a branch of the remote that commit, if it still is where it was ("": there was none). Nobody else's commits are lost: the
// remote compares.
func (m mirror) push(ctx context.Context, r remote, commit, branch, was string) error {
	ref := "refs/heads/" + branch
	r.change = &update{from: was, to: commit, ref: ref}
	_, err := m.git.remotely(ctx, r, "push", "--quiet", "--no-verify", "--no-signed", "--no-follow-tags", "--recurse-submodules=no",
		"--force-with-lease="+ref+":"+was, "--", r.url, commit+":"+ref)
	return pushError(err)
}

// maxRefusal is how much of the remote's words is repeated.
const maxRefusal = 500

// pushError finds out what a remote did not like. The phrases are those of git 2.31 to 2.50 (transport.c); what stands in brackets is the
// remote's, and so are the lines "remote: ".
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
