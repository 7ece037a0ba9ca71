package github

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strings"

	"github.com/google/go-github/v60/github"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/tasks"
)

// unchanged refuses a review that would say nothing new: of a head that somebody has had reviewed while this one waited, and of a push that
// changes nothing of what the pull request changes, as a rebase or a merge of the base alone. What was said before holds.
func (s *Source) unchanged(ctx context.Context, gh *github.Client, t tasks.Task, o origin) error {
	if o.byPerson() {
		return nil
	}
	switch p, err := s.state(ctx, o); {
	case err != nil:
		return err
	case p.LastReviewed == o.Head && p.ReviewedBy != t.ID: // its own was tried again by somebody
		return &tasks.InputError{Sentence: "The head was reviewed before."}
	case o.Action != "synchronize" && o.Action != looked:
		return nil
	}
	owner, name := o.path()
	diff, _, err := gh.PullRequests.GetRaw(ctx, owner, name, o.Number, github.RawOptions{Type: github.Diff})
	if hub.StatusCode(err) == http.StatusNotAcceptable {
		return nil // it is too large for GitHub
	}
	if err != nil {
		return s.sorted("read the changes of "+o.String(), err)
	}
	var reviewed string
	err = s.changeState(ctx, o, func(p *prState) error {
		reviewed = p.sameAs(o.Head, patchID(diff))
		return nil
	})
	if err == nil && reviewed != "" {
		err = &tasks.InputError{Sentence: "Nothing has changed since the review of " + hub.ShortSHA(reviewed) + "."}
	}
	return err
}

// sameAs notes what a head changes, and gives the reviewed one that changes the same, or nothing.
func (p *prState) sameAs(head, patch string) (reviewed string) {
	if last := p.LastReviewed; last != "" && last != head && p.Patches[last] == patch {
		reviewed, p.LastReviewed = last, head
	}
	p.Patches = map[string]string{p.LastReviewed: p.Patches[p.LastReviewed], head: patch}
	delete(p.Patches, "")
	return reviewed
}

// reviewed notes that a task's review of a head was posted and how its light ends, and gives what is remembered now. Again it changes nothing.
func (s *Source) reviewed(ctx context.Context, t tasks.Task, o origin, v hub.Verdict) (state prState, err error) {
	err = s.changeState(ctx, o, func(p *prState) error {
		if p.LastReviewed != o.Head && !o.byPerson() {
			p.Reviews++
		}
		p.LastReviewed, p.ReviewedBy, p.Verdict = o.Head, t.ID, keep(v)
		state = *p
		return nil
	})
	return state, err
}

// patchID is the same for two diffs if they change the same: where in the files and in which version of them does not count. It is what
// git-patch-id(1) is about, but for blanks, which may mean something.
func patchID(diff string) string {
	h := sha256.New()
	index := ""
	for l := range strings.Lines(diff) {
		switch {
		case strings.HasPrefix(l, "index "):
			index = l
			continue
		case strings.HasPrefix(l, "Binary files "): // nothing else tells what is in them
			l += index
		case strings.HasPrefix(l, "@@ "):
			l = "@@\n"
		}
		_, _ = io.WriteString(h, l)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
