package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	maxTask = 1 << 20 // bytes, of a task and of an ending
	maxID   = 80      // an ID is a file name and part of a URL
	idClock = 16      // digits of unix microseconds, until the year 2286: so IDs as text sort by time
)

// Submit stores a new task as waiting, in the thread that rec.Thread stands for; see [Store.Alias]. Of rec it reads ID, Thread, Class, Task, Scopes, Kin, Topic and At. It is idempotent by ID: when the
// record exists, in whatever state, that one comes back unchanged with created = false. [ErrTooLarge] when the task exceeds 1 MiB.
//
// [ErrSpent] when it was taken for an answer before; see [Store.Answer]. [*OverBudget] when one of its budgets for today is used up.
func (s *Store) Submit(ctx context.Context, rec Record, budgets ...Budget) (stored Record, created bool, err error) {
	return s.submit(ctx, rec, false, budgets)
}

// Hear is Submit for what may be an answer: when the thread's running task has asked something, a new task is not stored, and the error is
// an [Asking] with that task's ID.
func (s *Store) Hear(ctx context.Context, rec Record, budgets ...Budget) (stored Record, created bool, err error) {
	return s.submit(ctx, rec, true, budgets)
}

func (s *Store) submit(ctx context.Context, rec Record, hear bool, budgets []Budget) (stored Record, created bool, err error) {
	if err := check(rec); err != nil {
		return Record{}, false, fmt.Errorf("submit %s: %w", rec.ID, err)
	}
	args := []any{
		rec.ID, rec.Thread, rec.Class, []byte(rec.Task), micros(rec.At), hear, rec.Kin, strings.Join(rec.Scopes, "\n"),
		[]byte(rec.Topic), s.cfg.SessionTTL.Milliseconds(),
	}
	r, err := s.run(ctx, "submit", append(args, budgetArgs(budgets)...)...)
	if err != nil {
		return Record{}, false, fmt.Errorf("submit %s: %w", rec.ID, err)
	}
	if r.text(0) == "exists" {
		return r.record(rec.ID, 1), false, nil
	}
	return Record{
		ID: rec.ID, Thread: r.text(2), Class: rec.Class, Task: rec.Task, Scopes: rec.Scopes, State: Waiting,
		At: rec.At.Truncate(time.Microsecond).UTC(), Created: fromMicros(r.text(1)),
		Kin: rec.Kin, Before: r.number(3), Joins: r.text(4) == "1",
	}, true, nil
}

func check(rec Record) error {
	clock, rest, _ := strings.Cut(rec.ID, "-")
	switch {
	case len(clock) != idClock || strings.Trim(clock, "0123456789") != "" || rest == "":
		return fmt.Errorf("an ID begins with %d digits of unix microseconds and a dash", idClock)
	case len(rec.ID) > maxID:
		return fmt.Errorf("an ID has at most %d bytes, not %d", maxID, len(rec.ID))
	case strings.Trim(rest, "abcdefghijklmnopqrstuvwxyz0123456789.-") != "":
		return errors.New("an ID consists of a-z, 0-9, dot and dash")
	case rec.Thread == "":
		return errors.New("no thread")
	case slices.ContainsFunc(rec.Scopes, func(s string) bool { return !strings.Contains(s, ":") || strings.Contains(s, "\n") }):
		return errors.New("a scope is one line, <kind>:<name>")
	case len(rec.Task) > maxTask:
		return fmt.Errorf("task of %d bytes, limit %d: %w", len(rec.Task), maxTask, ErrTooLarge)
	}
	return nil
}
