package review

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/google/go-github/v60/github"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/markdown"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/findings"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
)

// The outcomes of findings are counted when the next review of the pull request is posted and when it is closed: after
// the event, and again by the next poll if that fails.

// dismissers sets who has dismissed the findings of threads: the first person with write access who marked one 👎, or
// else the person who resolved it, and whether the file has changed, because the change may be a fix.
func (r *Reviews) dismissers(
	ctx context.Context, where thread.Thread, head string, l findings.Ledger, threads []postedFinding,
) error {
	seen := map[string]string{}
	for _, k := range l.Recheck() {
		seen[k.ID] = k.Last
	}
	for i := range threads {
		t := &threads[i]
		people := t.dislikedBy
		if t.Resolved && !t.Ours {
			people = append(people, t.resolvedBy)
		}
		for n, login := range people {
			v, err := r.gate.MayRequest(ctx, where.Ref, login)
			if _, refused := errors.AsType[*tasks.InputError](err); err != nil && !refused { // skip it
				return err
			}
			if v.Allowed {
				t.DismissedBy, t.Disliked = login, n < len(t.dislikedBy)
				break
			}
		}
		if t.DismissedBy != "" && !t.Disliked && t.Line != 0 {
			var err error
			if t.Changed, err = changedSince(ctx, where, t.Path, seen[t.Finding], head); err != nil {
				return err
			}
		}
	}
	return nil
}

// changedSince reports whether a file may differ between an earlier commit and the head. If the earlier commit is
// unknown, it is "", and the file may differ.
func changedSince(ctx context.Context, t thread.Thread, path, earlier, head string) (bool, error) {
	if earlier == "" || earlier == head {
		return earlier == "", nil
	}
	var blobs [2]string
	for i, commit := range []string{earlier, head} {
		file, _, _, err := t.GH.Repositories.GetContents(ctx, t.Owner, t.Name, path,
			&github.RepositoryContentGetOptions{Ref: commit})
		if hub.Permanent(err) { // such as a file that is not there
			return true, nil
		} else if err != nil {
			return true, fmt.Errorf("read %s of %s: %w", path, t.Repo, err)
		}
		blobs[i] = file.GetSHA()
	}
	return blobs[0] != blobs[1], nil
}

// CloseFindings reads once more what people did with the findings of a pull request, and counts the outcomes.
func (r *Reviews) CloseFindings(ctx context.Context, o subject.Origin, merged bool) error {
	l, err := r.memory.ledgerMemo(o.Ref).Load(ctx)
	if err != nil || !slices.ContainsFunc(l.Known, func(k findings.Known) bool { return !k.Counted }) {
		return err
	}
	where, err := r.api.Reach(ctx, o.Ref)
	if err != nil {
		return err
	}
	if err := r.observe(ctx, where, o, l); err != nil {
		return fmt.Errorf("read what became of the findings of %s: %w", o, err)
	}
	if err := r.memory.countOutcomes(ctx, o.Ref, merged); err != nil {
		return fmt.Errorf("count the findings of %s: %w", o, err)
	}
	return nil
}

// observe reads what people did with findings in their threads, and records it.
func (r *Reviews) observe(ctx context.Context, where thread.Thread, o subject.Origin, known findings.Ledger) error {
	threads, _, err := onLines(ctx, where)
	if err != nil {
		return err
	}
	if err := r.dismissers(ctx, where, o.Head, known, threads); err != nil {
		return err
	}
	return r.memory.changeLedger(ctx, o.Ref, func(l *findings.Ledger) { l.Observe(observed(threads)) })
}

// Reported returns the result of a review without its text, or nil if it has none. It reads only the task and its
// ending.
func (*Reviews) Reported(t tasks.Task, e tasks.Ending) *tasks.ReviewResult {
	result, _, _ := reported(t, e)
	return result
}

func reported(t tasks.Task, e tasks.Ending) (*tasks.ReviewResult, subject.Origin, findings.Answer) {
	if t.Kind != subject.KindReview || e.Kind != tasks.Answered || len(e.Result.Structured) == 0 {
		return nil, subject.Origin{}, findings.Answer{}
	}
	answer, err := findings.Read(e.Result.Structured)
	if err != nil {
		return nil, subject.Origin{}, findings.Answer{}
	}
	o, err := subject.Of(t)
	if err != nil {
		return nil, subject.Origin{}, findings.Answer{}
	}
	return &tasks.ReviewResult{Head: hub.ShortSHA(o.Head), URL: o.URL, Reported: len(answer.Draft().Inline)}, o, answer
}

// Result returns the result of a review with its text, or nil if it has none. The text is what was posted. If that is
// not known, the text has all findings of the agent, and says so; they are not made harmless for GitHub.
func (r *Reviews) Result(ctx context.Context, t tasks.Task, e tasks.Ending) (*tasks.ReviewResult, error) {
	result, o, answer := reported(t, e)
	if result == nil {
		return nil, nil
	}
	l, err := r.memory.ledgerMemo(o.Ref).Load(ctx)
	if err != nil {
		return nil, err
	}
	plan, posted, _ := l.Plan(markOf(t, o, e).key())
	note := ""
	if !posted {
		for i, f := range answer.Findings {
			answer.Findings[i].Evidence = markdown.Closed(f.Evidence)
		}
		if plan = answer.Draft(); result.Reported > 0 {
			note = "\n\n" + notKnownAsPosted
		}
	}
	result.Text = plan.Notice(markdown.Closed(answer.Summary), pageOf(t, o)) + note
	result.Waits = posted && l.Waits(o.Head)
	return result, nil
}

// notKnownAsPosted ends the text of a review that is not posted yet, could not be, or is one of many.
const notKnownAsPosted = "These are all findings of the agent. The pull request shows which of them were posted."

// Acceptance returns what people did with the findings of the reviews of a repository, by kind.
func (r *Reviews) Acceptance(ctx context.Context, repo string) ([]tasks.Acceptance, error) {
	t, err := r.memory.tally(repo).Load(ctx)
	return slices.SortedFunc(maps.Values(t.Counts), func(a, b tasks.Acceptance) int {
		return cmp.Compare(a.Kind, b.Kind)
	}), err
}

var findingForm = regexp.MustCompile(`^[0-9a-f]{12}(?:-[0-9]+)?$`)

// IsFinding reports whether a text can be the ID of a finding.
func IsFinding(id string) bool { return findingForm.MatchString(id) }

// Dismiss dismisses a finding, as resolving its thread does. It is for findings without a thread. known reports whether
// the pull request has the finding.
func (r *Reviews) Dismiss(ctx context.Context, at thread.Ref, id, by string) (known bool, err error) {
	err = r.memory.changeLedger(ctx, at, func(l *findings.Ledger) { known = l.Dismiss(id, by) })
	return known, err
}
