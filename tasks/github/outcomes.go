package github

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-github/v60/github"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/review"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
	"github.com/errand-fleet/errand/tasks/intake"
)

// The outcomes of findings are counted when the next review of the pull request is posted and when it is closed: after
// the event, and again by the next poll if that fails.

// dismissers sets who has dismissed the findings of threads: the first person with write access who marked one 👎, or
// else the person who resolved it, and whether the file has changed, because the change may be a fix.
func (g reviewGate) dismissers(
	ctx context.Context, where thread.Thread, head string, l review.Ledger, threads []postedFinding,
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
			v, err := g.MayRequest(ctx, where.Ref, login)
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

// maxCounted bounds the findings that are recognized if they are added again.
const maxCounted = 500

// tally counts what people did with the findings of reviews in a repository.
type tally struct {
	Counts  map[string]tasks.Acceptance `json:"counts,omitempty"`  // by kind
	Counted []string                    `json:"counted,omitempty"` // the newest in Counts, by pull request and ID
}

func (m reviewMemory) tally(repo string) intake.Memo[tally] {
	return intake.Memo[tally]{Memory: m.Store, Name: "github/" + strings.ToLower(repo) + "/findings", Log: m.Log}
}

// add counts the findings of a pull request, each only once.
func (t *tally) add(number int, all []review.Judged) {
	if t.Counts == nil {
		t.Counts = map[string]tasks.Acceptance{}
	}
	for _, j := range all {
		key := fmt.Sprintf("%d/%s", number, j.ID)
		if slices.Contains(t.Counted, key) {
			continue
		}
		t.Counted = append(t.Counted, key)

		c := t.Counts[j.Kind.Name()]
		c.Kind = j.Kind.Name()
		switch j.Outcome {
		case review.Accepted:
			c.Fixed++
		case review.Rejected:
			c.Dismissed++
		case review.Ignored:
			c.Ignored++
		}
		t.Counts[c.Kind] = c
	}
	t.Counted = t.Counted[max(0, len(t.Counted)-maxCounted):]
}

// countOutcomes adds the outcomes of a pull request's findings to those of its repository. It may be called again.
func (m reviewMemory) countOutcomes(ctx context.Context, r thread.Ref, merged bool) error {
	l, err := m.ledgerMemo(r).Load(ctx)
	if err != nil {
		return err
	}
	judged := l.Outcomes(merged)
	if len(judged) == 0 {
		return nil
	}
	err = m.tally(r.Repo).Change(ctx, func(t *tally) error {
		t.add(r.Number, judged)
		return nil
	})
	if err != nil {
		return err
	}
	return m.changeLedger(ctx, r, func(l *review.Ledger) { l.Count(judged) })
}

// closeFindings reads once more what people did with the findings of a pull request, and counts the outcomes.
func (i *interpreter) closeFindings(ctx context.Context, o subject.Origin, merged bool) error {
	l, err := reviewsOf(i.memory).ledgerMemo(o.Ref).Load(ctx)
	if err != nil || !slices.ContainsFunc(l.Known, func(k review.Known) bool { return !k.Counted }) {
		return err
	}
	where, err := i.api.Reach(ctx, o.Ref)
	if err != nil {
		return err
	}
	threads, _, err := onLines(ctx, where)
	if err == nil {
		err = dismissalsOf(i.gate).dismissers(ctx, where, o.Head, l, threads)
	}
	if err == nil {
		err = reviewsOf(i.memory).changeLedger(ctx, o.Ref, func(l *review.Ledger) { l.Observe(observed(threads)) })
	}
	if err == nil {
		err = reviewsOf(i.memory).countOutcomes(ctx, o.Ref, merged)
	}
	if err != nil {
		return fmt.Errorf("count the findings of %s: %w", o, err)
	}
	return nil
}

// missedOutcomes counts the findings of those of the latest pull requests that were closed, unless their events did.
func (v *repositoryPoll) missedOutcomes(ctx context.Context, latest []*github.PullRequest) error {
	var failed []error
	for _, pr := range latest {
		if pr.GetState() == "open" {
			continue
		}
		err := v.p.closeFindings(ctx, subject.OfPull(v.Repo, pr), pr.MergedAt != nil)
		if hub.Permanent(err) {
			v.p.log.Warn("count findings", "err", err)
			continue
		}
		failed = append(failed, err)
		if v.p.limited(ctx, err) {
			break
		}
	}
	return errors.Join(failed...)
}

// Review implements [tasks.Reviewer]. It reads the ledger and asks GitHub nothing.
func (s *Source) Review(ctx context.Context, t tasks.Task, e tasks.Ending) (*tasks.ReviewResult, error) {
	answer, ok := readAnswer(e, s.log)
	if t.Kind != subject.KindReview || !ok {
		return nil, nil
	}
	o, err := subject.Of(t)
	if err != nil {
		return nil, err
	}
	ledger, err := reviewsOf(s.memory).ledgerMemo(o.Ref).Load(ctx)
	if err != nil {
		return nil, err
	}
	v := &tasks.ReviewResult{Head: hub.ShortSHA(o.Head), URL: o.URL, Summary: answer.Summary}
	for _, k := range ledger.History(o.Head, answer.Findings) {
		v.Findings = append(v.Findings, tasks.Finding{
			ID: k.ID, Severity: string(k.Severity), Status: string(k.Status), New: k.First == o.Head,
			Here: k.First == o.Head || k.Last == o.Head, First: hub.ShortSHA(k.First), Last: hub.ShortSHA(k.Last),
			Answered: k.Answered, Path: k.Path, Line: k.Line, StartLine: k.StartLine, Removed: k.Side == review.Left,
			Claim: k.Claim, Evidence: k.Evidence, Suggestion: k.Suggestion, Original: k.Original, URL: addressOf(o, k),
		})
	}
	return v, nil
}

// addressOf returns the web address of a finding: its comment, its line, or the pull request.
func addressOf(o subject.Origin, k review.Known) string {
	repo, _, _ := strings.Cut(o.URL, "/pull/")
	switch {
	case k.Comment != 0:
		return fmt.Sprintf("%s#discussion_r%d", o.URL, k.Comment)
	case k.Path == "" || k.Side == review.Left:
		return o.URL + "/files"
	}
	line := ""
	switch {
	case k.StartLine > 0:
		line = fmt.Sprintf("#L%d-L%d", k.StartLine, k.Line)
	case k.Line > 0:
		line = fmt.Sprintf("#L%d", k.Line)
	}
	return repo + "/blob/" + cmp.Or(k.Last, o.Head) + (&url.URL{Path: "/" + k.Path}).EscapedPath() + line
}

// Acceptance implements [tasks.Reviewer].
func (s *Source) Acceptance(ctx context.Context, repo string) ([]tasks.Acceptance, error) {
	t, err := reviewsOf(s.memory).tally(repo).Load(ctx)
	return slices.SortedFunc(maps.Values(t.Counts), func(a, b tasks.Acceptance) int {
		return cmp.Compare(a.Kind, b.Kind)
	}), err
}

// Replies to /dismiss.
const (
	unknownFinding = "Unknown finding. The summary of the review lists the findings with their IDs."
	whichFinding   = "Give the ID of a finding from the summary of the review: `/dismiss 0123456789ab`."
)

var findingForm = regexp.MustCompile(`^[0-9a-f]{12}(?:-[0-9]+)?$`)

// dismiss dismisses a finding, as resolving its thread does. It is for findings without a thread.
func (i *interpreter) dismiss(ctx context.Context, h remarkEvent) (note string, ok bool, err error) {
	id, _, _ := strings.Cut(h.said.rest, "\n")
	if id = strings.TrimSpace(id); !findingForm.MatchString(id) {
		return whichFinding, false, nil
	}
	err = reviewsOf(i.memory).changeLedger(ctx, h.Ref, func(l *review.Ledger) { ok = l.Dismiss(id, h.Author) })
	if err == nil && !ok {
		note = unknownFinding
	}
	return note, ok, err
}
