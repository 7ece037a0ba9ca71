package github

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/review"
	"github.com/errand-fleet/errand/tasks/intake"
)

// settle decides by the pull request's ledger what of an answer is to be said. For one ending that is always the same.
func (r *report) settle(ctx context.Context, m mark, a review.Answer) (review.Plan, error) {
	threads, err := r.threads(ctx)
	if err != nil {
		return review.Plan{}, err
	}
	var p review.Plan
	err = r.source.memory.changeLedger(ctx, r.origin, func(l *review.Ledger) {
		l.Observe(observed(threads))
		p = l.Settle(review.Input{Task: m.key(), Head: r.origin.Head, Full: r.origin.Full, Answer: a})
	})
	return p, err
}

// remember is called when the findings of a plan stand at their lines. It ends the threads of what is mended, and notes that all was told,
// with which verdict.
func (r *report) remember(ctx context.Context, m mark, posted review.Plan, v hub.Verdict) (prState, error) {
	if over := slices.Concat(posted.Fixed, posted.Gone); len(over) > 0 {
		if err := r.end(ctx, over); err != nil {
			return prState{}, err
		}
	}
	err := r.source.memory.changeLedger(ctx, r.origin, func(l *review.Ledger) { l.Told(m.key(), posted) })
	if err != nil {
		return prState{}, err
	}
	return r.source.memory.reviewed(ctx, r.task, r.origin, v)
}

// end ends the threads of findings that are over.
func (r *report) end(ctx context.Context, over []review.Known) error {
	threads, err := r.threads(ctx)
	if err != nil {
		return err
	}
	for _, k := range over {
		i := slices.IndexFunc(threads, func(t told) bool { return t.Finding == k.ID })
		if i < 0 {
			continue // it was in the summary, or somebody has deleted it
		}
		if err := r.endThread(ctx, threads[i], k); hub.Permanent(err) {
			r.log.Warn("end thread", "err", err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// threads reads those about findings of ours, as they are now. Where GitHub does not let us, all else goes on without.
func (r *report) threads(ctx context.Context) ([]told, error) {
	ours, _, err := r.source.threads(ctx, r.gh, r.origin)
	if hub.Permanent(err) {
		r.log.Warn("review without threads", "err", err)
		return nil, nil
	}
	return ours, err
}

func (m memory) ledgerMemo(o origin) intake.Memo[review.Ledger] {
	return intake.Memo[review.Ledger]{Memory: m.store, Name: "github/" + o.String() + "/findings", Log: m.log}
}

// changeLedger changes what is remembered of a pull request's findings. change may be called several times.
func (m memory) changeLedger(ctx context.Context, o origin, change func(*review.Ledger)) error {
	return m.ledgerMemo(o).Change(ctx, func(l *review.Ledger) error {
		change(l)
		return nil
	})
}

const (
	maxOthers = 30  // threads that others have begun, of which the agent is told
	maxOther  = 300 // characters of each
)

// earlier says to the agent what earlier reviews have found and what others have said already, and which head was reviewed last; empty when
// the pull request is new to us, and when a review from the beginning was asked for.
func (s *Source) earlier(ctx context.Context, gh *github.Client, t tasks.Task, o origin) (text, since string, err error) {
	l, err := s.memory.ledgerMemo(o).Load(ctx)
	if err != nil {
		return "", "", err
	}
	ours, others, err := s.threads(ctx, gh, o)
	if hub.Permanent(err) {
		s.log.Warn("brief without threads", "run", t.ID, "err", err)
	} else if err != nil {
		return "", "", s.later("read threads", err)
	}
	l.Observe(observed(ours)) // of this copy: the report writes it down
	text = recheck(l) + said(others, askedAt(t.ID))
	if l.Reviewed == "" {
		return text, "", nil
	}
	if o.Full || l.Reviewed == o.Head {
		return text + fmt.Sprintf("The pull request was reviewed before, at %s. Review all of it again.\n", hub.ShortSHA(l.Reviewed)), "", nil
	}
	text += fmt.Sprintf("The pull request was reviewed before, at %s. Look at the open findings first, then at what is new since then: in since.diff, if there is one. "+
		"What has not changed was reviewed already; report it only if what is new breaks it.\n", hub.ShortSHA(l.Reviewed))
	if l.Floor != "" {
		text += "Report nothing that is less grave than " + string(l.Floor) + ".\n"
	}
	return text, l.Reviewed, nil
}

// recheck lists the findings that are open and those that are settled between people.
func recheck(l review.Ledger) string {
	var b strings.Builder
	if open := l.Recheck(); len(open) > 0 {
		b.WriteString("These findings of earlier reviews are open. Look at each and say under earlier, by its id, what has become of it: " +
			"fixed, open, or outdated if what it was about is gone. Do not report them again.\n" + untrusted.Quote("open findings", list(open)))
	}
	if final := l.Final(); len(final) > 0 {
		b.WriteString("These were dismissed or answered by people. That is final: do not report them again, in whatever words.\n" +
			untrusted.Quote("settled findings", list(final)))
	}
	return b.String()
}

func list(all []review.Known) string {
	var b strings.Builder
	for _, k := range all {
		fmt.Fprintf(&b, "- id %s, %s, %s: %s\n", k.ID, k.Severity, located(k.Path, k.Line), untrusted.Plain(k.Claim))
	}
	return b.String()
}

// located is a line of a file, or the file alone where the line is not known any more.
func located(path string, at int) string {
	path = untrusted.Line(path, 300)
	if at == 0 {
		return path
	}
	return fmt.Sprintf("%s:%d", path, at)
}

// said lists what others have said at lines of the diff, as it was at a time.
func said(others []thread, at time.Time) string {
	var b strings.Builder
	for _, t := range others[max(0, len(others)-maxOthers):] {
		if c := t.Comments.Nodes[0]; !c.Created.After(at) && (c.Edited == nil || !c.Edited.After(at)) {
			fmt.Fprintf(&b, "- %s: %s\n", located(t.Path, t.Line), untrusted.Line(c.Body, maxOther))
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "Others have said this at lines of the diff. Do not repeat it.\n" + untrusted.Quote("comments of others", b.String())
}

// What is said of findings that somebody wants ended.
const (
	unknownFinding = "There is no such finding here. The summary of the review names them."
	whichFinding   = "Say which finding, as it stands in the summary of the review: `/dismiss 0123456789ab`."
)

var dismissForm = regexp.MustCompile(`(?m)` + sayDismiss + `[ \t]+([0-9a-f]{12}(?:-[0-9]+)?)\s*$`)

// dismiss ends a finding for good, as resolving its thread does. It is for those that have none.
func (s *Source) dismiss(ctx context.Context, _ *tasks.Desk, h heard) (note string, ok bool, err error) {
	m := dismissForm.FindStringSubmatch(untrusted.Visible(h.body))
	if m == nil {
		return whichFinding, false, nil
	}
	err = s.memory.changeLedger(ctx, h.origin(), func(l *review.Ledger) { ok = l.Dismiss(m[1]) })
	if err == nil && !ok {
		note = unknownFinding
	}
	return note, ok, err
}
