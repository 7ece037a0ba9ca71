package github

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/internal/words"
	"github.com/errand-fleet/errand/tasks/github/review"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
	"github.com/errand-fleet/errand/tasks/intake"
)

// selectFindings returns the plan of a review: it drops findings that the ledger already has. Calling it again for the
// same ending gives the same plan.
func (r *report) selectFindings(ctx context.Context, m mark, a review.Answer) (review.Plan, error) {
	threads, err := r.threads(ctx)
	if err != nil {
		return review.Plan{}, err
	}
	known, err := reviewsOf(r.by.memory).ledgerMemo(r.o.Ref).Load(ctx)
	if err == nil {
		err = dismissalsOf(r.by.gate).dismissers(ctx, r.Thread, r.o.Head, known, threads)
	}
	if err != nil {
		return review.Plan{}, err
	}
	var p review.Plan
	err = reviewsOf(r.by.memory).changeLedger(ctx, r.o.Ref, func(l *review.Ledger) {
		l.Observe(observed(threads))
		p = l.Settle(review.Input{Task: m.key(), Head: r.o.Head, Full: r.o.Full, Answer: a})
	})
	return p, err
}

// remember is called when the findings of a plan are posted on their lines. It resolves the threads of fixed findings,
// and records the plan as posted with its verdict.
func (r *report) remember(ctx context.Context, m mark, posted review.Plan, v hub.Verdict) (subject.State, error) {
	if over := slices.Concat(posted.Fixed, posted.Gone); len(over) > 0 {
		if err := r.resolveThreads(ctx, over); err != nil {
			return subject.State{}, err
		}
	}
	err := reviewsOf(r.by.memory).changeLedger(ctx, r.o.Ref, func(l *review.Ledger) { l.Told(m.key(), posted) })
	if err == nil {
		err = reviewsOf(r.by.memory).countOutcomes(ctx, r.o.Ref, false)
	}
	if err != nil {
		return subject.State{}, err
	}
	return reviewsOf(r.by.memory).reviewed(ctx, r.task, r.o, v)
}

// resolveThreads resolves the threads of findings that are fixed or outdated.
func (r *report) resolveThreads(ctx context.Context, over []review.Known) error {
	threads, err := r.threads(ctx)
	if err != nil {
		return err
	}
	for _, k := range over {
		i := slices.IndexFunc(threads, func(t postedFinding) bool { return t.Finding == k.ID })
		if i < 0 {
			continue // it was in the summary, or was deleted
		}
		if err := r.endThread(ctx, threads[i], k); hub.Permanent(err) {
			r.log.Warn("end thread", "err", err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// threads reads the threads of errand's findings. If GitHub refuses, the review continues without them.
func (r *report) threads(ctx context.Context) ([]postedFinding, error) {
	ours, _, err := onLines(ctx, r.Thread)
	if hub.Permanent(err) {
		r.log.Warn("review without threads", "err", err)
		return nil, nil
	}
	return ours, err
}

func (m reviewMemory) ledgerMemo(r thread.Ref) intake.Memo[review.Ledger] {
	return intake.Memo[review.Ledger]{Memory: m.Store, Name: "github/" + r.String() + "/findings", Log: m.Log}
}

// changeLedger changes a pull request's ledger. change may be called several times.
func (m reviewMemory) changeLedger(ctx context.Context, r thread.Ref, change func(*review.Ledger)) error {
	return m.ledgerMemo(r).Change(ctx, func(l *review.Ledger) error {
		change(l)
		return nil
	})
}

const (
	maxOthers = 30  // threads of others that the agent gets
	maxOther  = 300 // characters of each
)

// earlierReviews returns a text for the agent with the findings of earlier reviews, the comments of others and the last
// reviewed head. It returns "" for a new pull request. A full review gets no head.
func (k conversation) earlierReviews(ctx context.Context) (text, since string, err error) {
	o := k.o
	l, err := reviewsOf(k.b.memory).ledgerMemo(o.Ref).Load(ctx)
	if err != nil {
		return "", "", err
	}
	ours, others, err := onLines(ctx, k.Thread)
	if hub.Permanent(err) {
		k.Log.Warn("brief without threads", "run", k.task.ID, "err", err)
	} else if err != nil {
		return "", "", k.BriefError("read threads", err)
	}
	if err := dismissalsOf(k.b.gate).dismissers(ctx, k.Thread, o.Head, l, ours); err != nil {
		return "", "", k.BriefError("read who resolved threads", err)
	}
	l.Observe(observed(ours)) // a copy; the report saves it
	text = quoteFindings(l) + quoteOthers(others, thread.AskedAt(k.task.ID))
	if l.Reviewed == "" {
		return text, "", nil
	}
	p, err := k.b.memory.State(ctx, o.Ref)
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

// quoteFindings returns a text for the agent with the open findings, and those that people have settled.
func quoteFindings(l review.Ledger) string {
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
	return b.String()
}

func listFindings(all []review.Known) string {
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

// onLines reads the threads on lines of the diff: those of errand's findings, and those started by others.
func onLines(ctx context.Context, t thread.Thread) (ours []postedFinding, others []thread.LineThread, err error) {
	me, err := t.Forge.Login(ctx)
	if err != nil {
		return nil, nil, err
	}
	all, author, err := t.LineThreads(ctx)
	for _, one := range all {
		if f, ok := findingOf(one, me, author); ok {
			ours = append(ours, f)
		} else if len(one.Comments.Nodes) > 0 {
			others = append(others, one)
		}
	}
	return ours, others, err
}

// postedFinding is a thread that errand started with a finding.
type postedFinding struct {
	review.Thread
	mayResolve bool
	resolvedBy string
	dislikedBy []string
}

// settledMark begins the comment with which errand ends one of its threads.
const settledMark = "<!-- errand:settled -->\n"

// findingOf returns the finding of one of errand's threads, and the state of the thread. Replies count if they are by
// author, who opened the pull request from a branch of the repository, or by people with a role in the repository.
func findingOf(t thread.LineThread, me, author string) (postedFinding, bool) {
	if len(t.Comments.Nodes) == 0 {
		return postedFinding{}, false
	}
	first := t.Comments.Nodes[0]
	id, ok := review.FindingOf(first.Body)
	if !ok || first.Author.Name() != me {
		return postedFinding{}, false
	}
	f := review.Thread{
		ID: t.ID, Comment: first.ID, Finding: id, Path: t.Path, Line: t.Line, Text: first.Body, Resolved: t.Resolved,
	}
	for _, c := range t.Comments.Nodes[1:] {
		switch who := c.Author.Name(); {
		case who == me:
			f.Ours = f.Ours || strings.HasPrefix(c.Body, settledMark)
		case c.Author.Kind == "User" &&
			(who == author || slices.Contains([]string{"OWNER", "MEMBER", "COLLABORATOR"}, c.Association)):
			f.Answered = true
		}
	}
	p := postedFinding{Thread: f, mayResolve: t.MayResolve, resolvedBy: t.ResolvedBy.Name()}
	for _, c := range t.First.Nodes {
		for _, r := range c.Dislikes.Nodes {
			p.dislikedBy = append(p.dislikedBy, r.User.Name())
		}
	}
	return p, true
}

// observed converts threads for the ledger.
func observed(ours []postedFinding) []review.Thread {
	all := make([]review.Thread, len(ours))
	for i, t := range ours {
		all[i] = t.Thread
	}
	return all
}

// endThread comments in one of errand's threads that the finding is fixed or outdated, and resolves the thread. It
// skips steps that are done.
func (r *report) endThread(ctx context.Context, t postedFinding, k review.Known) error {
	if t.Resolved {
		return nil
	}
	if !t.Ours {
		body := settledMark + "Fixed in " + hub.ShortSHA(r.o.Head) + ".\n"
		if k.Status == review.Outdated {
			body = settledMark + "This no longer applies as of " + hub.ShortSHA(r.o.Head) + ".\n"
		}
		if _, err := r.Post(ctx, thread.Spot{Place: thread.OnLine, Thread: t.Comment}, body); err != nil {
			return fmt.Errorf("reply to comment %d of %s: %w", t.Comment, r.o, err)
		}
	}
	if !t.mayResolve {
		return nil
	}
	return r.Resolve(ctx, t.ID)
}
