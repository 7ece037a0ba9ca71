package review

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/internal/words"
	"github.com/errand-fleet/errand/tasks/github/findings"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
)

// selectFindings returns the plan of a review: it drops findings that the ledger already has. Calling it again for the
// same ending gives the same plan.
func (r *Report) selectFindings(ctx context.Context, m mark, a findings.Answer) (findings.Plan, error) {
	threads, err := r.threads(ctx)
	if err != nil {
		return findings.Plan{}, err
	}
	known, err := r.by.memory.ledgerMemo(r.o.Ref).Load(ctx)
	if err != nil {
		return findings.Plan{}, err
	}
	if err := r.by.dismissers(ctx, r.Thread, r.o.Head, known, threads); err != nil {
		return findings.Plan{}, err
	}
	var p findings.Plan
	err = r.by.memory.changeLedger(ctx, r.o.Ref, func(l *findings.Ledger) {
		l.Observe(observed(threads))
		p = l.Settle(findings.Input{Task: m.key(), Head: r.o.Head, Full: r.o.Full, Answer: a})
	})
	return p, err
}

// remember is called when the findings of a plan are posted on their lines. It resolves the threads of fixed findings,
// and records the plan as posted with its verdict.
func (r *Report) remember(ctx context.Context, m mark, posted findings.Plan, v hub.Verdict) (subject.State, error) {
	if over := slices.Concat(posted.Fixed, posted.Gone); len(over) > 0 {
		if err := r.resolveThreads(ctx, over); err != nil {
			return subject.State{}, err
		}
	}
	err := r.by.memory.changeLedger(ctx, r.o.Ref, func(l *findings.Ledger) { l.Told(m.key(), posted) })
	if err != nil {
		return subject.State{}, err
	}
	if err := r.by.memory.countOutcomes(ctx, r.o.Ref, false); err != nil {
		return subject.State{}, err
	}
	return r.by.memory.reviewed(ctx, r.task, r.o, v)
}

// earlierReviews returns a text for the agent with the findings of earlier reviews, the comments of others and the last
// reviewed head. It returns "" for a new pull request. A full review gets no head.
func (k present) earlierReviews(ctx context.Context) (text, since string, err error) {
	o := k.o
	l, err := k.r.memory.ledgerMemo(o.Ref).Load(ctx)
	if err != nil {
		return "", "", err
	}
	ours, others, err := onLines(ctx, k.Thread)
	if hub.Permanent(err) {
		k.Log.Warn("brief without threads", "run", k.task.ID, "err", err)
	} else if err != nil {
		return "", "", k.BriefError("read threads", err)
	}
	if err := k.r.dismissers(ctx, k.Thread, o.Head, l, ours); err != nil {
		return "", "", k.BriefError("read who resolved threads", err)
	}
	l.Observe(observed(ours)) // a copy; the report saves it
	text = quoteFindings(l) + quoteOthers(others, thread.AskedAt(k.task.ID))
	if l.Reviewed == "" {
		return text, "", nil
	}
	p, err := k.r.memory.State(ctx, o.Ref)
	if err != nil {
		return "", "", err
	}
	otherBase := p.LastBase != "" && p.LastBase != o.Base // what is new to it is more than what is new in the head
	if o.Full || l.Reviewed == o.Head || otherBase {
		return text + fmt.Sprintf("The pull request was reviewed before, at %s. Review all of it again.\n",
			hub.ShortSHA(l.Reviewed)), "", nil
	}
	text += fmt.Sprintf("The pull request was reviewed before, at %s. Check the open findings first, then the "+
		"changes since then, in since.diff if it exists. Unchanged code was already reviewed; report it only if "+
		"the new changes break it.\n", hub.ShortSHA(l.Reviewed))
	if l.Floor != "" {
		text += "Do not report findings less severe than " + string(l.Floor) + ".\n"
	}
	return text, l.Reviewed, nil
}

const (
	maxOthers = 30  // threads of others that the agent gets
	maxOther  = 300 // characters of each
)

// quoteFindings returns a text for the agent with the open findings, those that people have settled, and refuted ones.
func quoteFindings(l findings.Ledger) string {
	var b strings.Builder
	if open := l.Recheck(); len(open) > 0 {
		b.WriteString("These findings of earlier reviews are open. Check each one and give its status under earlier, " +
			"by its id: fixed, open, or outdated if its code is gone. Do not report them again.\n" +
			untrusted.Quote("open findings", listFindings(open)))
	}
	if final := l.Final(); len(final) > 0 {
		b.WriteString("People have dismissed or answered these. This is final: do not report " +
			"them again, in any wording.\n" +
			untrusted.Quote("settled findings", listFindings(final)))
	}
	if len(l.Refuted) > 0 {
		var list strings.Builder
		for _, f := range l.Refuted {
			fmt.Fprintf(&list, "- %s, %s: %s\n", f.Severity, located(f.Path, f.Line), untrusted.Plain(f.Claim))
		}
		b.WriteString("These were reported before, looked at again and refuted. Report one only if new changes make " +
			"it true.\n" + untrusted.Quote("refuted findings", list.String()))
	}
	return b.String()
}

func listFindings(all []findings.Known) string {
	var b strings.Builder
	for _, k := range all {
		fmt.Fprintf(&b, "- id %s, %s, %s: %s\n", k.ID, k.Severity, located(k.Path, k.Line), untrusted.Plain(k.Claim))
	}
	return b.String()
}

// located formats a file and line, or only the file if the line is no longer known.
func located(path string, at int) string {
	path = untrusted.Line(path, 300)
	if at == 0 {
		return path
	}
	return fmt.Sprintf("%s:%d", path, at)
}

// quoteOthers returns a text for the agent with the comments that others had written on lines of the diff by then.
func quoteOthers(others []thread.LineThread, at time.Time) string {
	var b strings.Builder
	for _, t := range others[max(0, len(others)-maxOthers):] {
		if c := t.Comments.Nodes[0]; !c.Created.After(at) && !c.Edited.After(at) {
			text := words.Markdown(c.Body, "").All
			fmt.Fprintf(&b, "- %s: %s\n", located(t.Path, t.Line), untrusted.Line(text, maxOther))
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "Others wrote these comments on lines of the diff. Do not repeat them.\n" +
		untrusted.Quote("comments of others", b.String())
}
