package github

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	hub "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/review"
)

// settle decides by the pull request's ledger what of an answer is to be said. For one ending that is always the same.
func (r *report) settle(ctx context.Context, m mark, a review.Answer) (review.Plan, error) {
	threads, err := r.threads(ctx)
	if err != nil {
		return review.Plan{}, err
	}
	var p review.Plan
	err = r.source.changeLedger(ctx, r.origin, func(l *review.Ledger) {
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
	err := r.source.changeLedger(ctx, r.origin, func(l *review.Ledger) { l.Told(m.key(), posted) })
	if err != nil {
		return prState{}, err
	}
	return r.source.reviewed(ctx, r.task, r.origin, v)
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

// ledger reads what is remembered of a pull request's findings.
func (s *Source) ledger(ctx context.Context, o origin) (review.Ledger, error) {
	body, err := s.cfg.Memory.Memo(ctx, findingsMemo(o))
	if err != nil {
		return review.Ledger{}, fmt.Errorf("read findings of %s: %w", o, err)
	}
	var l review.Ledger
	tasks.ReadMemo(s.cfg.Log, findingsMemo(o), body, &l)
	return l, nil
}

// changeLedger lets change correct it; others that do the same meanwhile make it be called again.
func (s *Source) changeLedger(ctx context.Context, o origin, change func(*review.Ledger)) error {
	err := s.cfg.Memory.ChangeMemo(ctx, findingsMemo(o), func(old json.RawMessage) (json.RawMessage, error) {
		var l review.Ledger
		tasks.ReadMemo(s.cfg.Log, findingsMemo(o), old, &l)
		change(&l)
		body, err := json.Marshal(l)
		if err != nil || bytes.Equal(body, old) {
			return nil, err // nothing to write
		}
		return body, nil
	})
	if err != nil {
		return fmt.Errorf("change findings of %s: %w", o, err)
	}
	return nil
}

// findingsMemo names the memo.
func findingsMemo(o origin) string { return "github/" + o.String() + "/findings" }
