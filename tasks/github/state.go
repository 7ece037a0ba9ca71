package github

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/google/go-github/v60/github"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
)

// pausing returns the note at the end of the summary after the last automatic review.
func pausing(p subject.State) string {
	if p.Reviews < subject.MaxReviews {
		return ""
	}
	return fmt.Sprintf("\n\nAfter %d reviews, pushes are no longer reviewed. Comment `/review` for another review, "+
		"or `/resume` to review every push again.", p.Reviews)
}

// unchanged refuses a review without anything new to report: of a head that was reviewed while this task waited, and of
// a push that does not alter the pull request's changes, such as a rebase or a merge of the base. The last review still
// holds.
func (k conversation) unchanged(ctx context.Context) error {
	o := k.o
	if o.ByPerson() {
		return nil
	}
	switch p, err := k.b.memory.State(ctx, o.Ref); {
	case err != nil:
		return err
	case p.HasReviewed(o) && p.ReviewedBy != k.task.ID: // its own review was retried
		return thread.Refuse("The head was reviewed before.")
	case o.Action != "synchronize" && o.Action != subject.ActionPolled:
		return nil
	}
	diff, _, err := k.GH.PullRequests.GetRaw(ctx, k.Owner, k.Name, o.Number, github.RawOptions{Type: github.Diff})
	if hub.StatusCode(err) == http.StatusNotAcceptable {
		return nil // the diff is too large for GitHub
	}
	if err != nil {
		return k.BriefError("read the diff of "+o.String(), err)
	}
	var reviewed string
	err = k.b.memory.ChangeState(ctx, o.Ref, func(p *subject.State) error {
		reviewed = sameAs(p, o, patchID(diff))
		return nil
	})
	if err == nil && reviewed != "" {
		err = thread.Refuse("Nothing has changed since the review of " + hub.ShortSHA(reviewed) + ".")
	}
	return err
}

// sameAs records a head's changes and returns the reviewed head with the same changes to the same base, or "".
func sameAs(p *subject.State, o subject.Origin, patch string) (reviewed string) {
	last := subject.Version(p.LastReviewed, p.LastBase)
	changes := map[string]string{last: p.Patches[last]}
	if last != "" && p.LastReviewed != o.Head && p.LastBase == o.Base && p.Patches[last] == patch {
		reviewed, p.LastReviewed, p.LastBase = p.LastReviewed, o.Head, o.Base
		changes = map[string]string{}
	}
	changes[subject.Version(o.Head, o.Base)] = patch
	delete(changes, "")
	p.Patches = changes
	return reviewed
}

// reviewMemory is the memory with the findings of reviews.
type reviewMemory struct{ subject.Memory }

func reviewsOf(m subject.Memory) reviewMemory { return reviewMemory{m} }

// reviewGate is the gate for what people do with findings.
type reviewGate struct{ *subject.Gate }

func dismissalsOf(g *subject.Gate) reviewGate { return reviewGate{g} }

// briefed returns the origin of a review with the base that its pull request has now, and records that the task is
// briefed with it: the event may be older, and its base gone.
func (m reviewMemory) briefed(
	ctx context.Context, t tasks.Task, o subject.Origin, pr *github.PullRequest,
) (subject.Origin, error) {
	o.Base, o.BaseSHA = pr.GetBase().GetRef(), pr.GetBase().GetSHA()
	err := m.ChangeState(ctx, o.Ref, func(p *subject.State) error {
		p.Briefed = subject.BriefedBase{Task: t.ID, Base: o.Base}
		if p.Review == t.ID {
			p.MoveTo(o)
			p.Review = t.ID
		}
		return nil
	})
	return o, err
}

// asBriefed returns the origin of a review with the base that it was briefed with.
func (m reviewMemory) asBriefed(ctx context.Context, t tasks.Task, o subject.Origin) (subject.Origin, error) {
	p, err := m.State(ctx, o.Ref)
	if p.Briefed.Task == t.ID {
		o.Base = p.Briefed.Base
	}
	return o, err
}

// reviewed records that a task's review was posted, with its verdict, and returns the new state. It may be called
// again.
func (m reviewMemory) reviewed(
	ctx context.Context, t tasks.Task, o subject.Origin, v hub.Verdict,
) (state subject.State, err error) {
	err = m.ChangeState(ctx, o.Ref, func(p *subject.State) error {
		if !p.HasReviewed(o) && !o.ByPerson() {
			p.Reviews++
		}
		p.LastReviewed, p.LastBase, p.ReviewedBy, p.Verdict = o.Head, o.Base, t.ID, saveVerdict(v)
		state = *p
		return nil
	})
	return state, err
}

// patchID is the same for two diffs with the same changes, regardless of line numbers and blob IDs. Unlike
// git-patch-id(1) it keeps whitespace, which may be significant.
func patchID(diff string) string {
	h := sha256.New()
	index := ""
	for l := range strings.Lines(diff) {
		switch {
		case strings.HasPrefix(l, "index "):
			index = l
			continue
		case strings.HasPrefix(l, "Binary files "): // this is the only line about a binary file
			l += index
		case strings.HasPrefix(l, "@@ "):
			l = "@@\n"
		}
		_, _ = io.WriteString(h, l)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
