package review

import (
	"context"
	"fmt"
	"slices"
	"strings"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/tasks/github/findings"
	"github.com/errand-fleet/errand/tasks/github/thread"
)

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
	findings.Thread
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
	id, ok := findings.FindingOf(first.Body)
	if !ok || first.Author.Name() != me {
		return postedFinding{}, false
	}
	f := findings.Thread{
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
func observed(ours []postedFinding) []findings.Thread {
	all := make([]findings.Thread, len(ours))
	for i, t := range ours {
		all[i] = t.Thread
	}
	return all
}

// endThread comments in one of errand's threads that the finding is fixed or outdated, and resolves the thread. It
// skips steps that are done.
func (r *Report) endThread(ctx context.Context, t postedFinding, k findings.Known) error {
	if t.Resolved {
		return nil
	}
	if !t.Ours {
		body := settledMark + "Fixed in " + hub.ShortSHA(r.o.Head) + ".\n"
		if k.Status == findings.Outdated {
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

// resolveThreads resolves the threads of findings that are fixed or outdated.
func (r *Report) resolveThreads(ctx context.Context, over []findings.Known) error {
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
func (r *Report) threads(ctx context.Context) ([]postedFinding, error) {
	ours, _, err := onLines(ctx, r.Thread)
	if hub.Permanent(err) {
		r.log.Warn("review without threads", "err", err)
		return nil, nil
	}
	return ours, err
}
