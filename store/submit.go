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

// ReplyMode says whether a submitted message can be the answer to a question of the thread's running task.
type ReplyMode string

// The reply modes.
const (
	NoReply   ReplyMode = ""     // the message is a task
	MayReply  ReplyMode = "may"  // an answer if a question is open, otherwise a task
	OnlyReply ReplyMode = "only" // an answer, never a task
)

// Submit stores a new task as waiting, in the thread that rec.Thread resolves to; see [Threads.Alias]. It reads the
// fields ID, Thread, Class, Task, Scopes, MergeKey, Topic, At and Reply of rec. It is idempotent by ID: if the record
// exists, in whatever state, Submit returns it unchanged with created = false.
//
// It returns [ErrTooLarge] if the task exceeds 1 MiB, [ErrSpent] if the message was used as an answer before (see
// [Questions.Answer]), and [*OverBudget] if one of today's budgets is used up. Unless rec.Reply is [NoReply], it
// stores nothing and returns [*OpenQuestion] if the thread's running task has asked something; [OnlyReply] returns
// [ErrNoQuestion] if it has not.
func (s *Store) Submit(ctx context.Context, rec Record, budgets ...Budget) (stored Record, created bool, err error) {
	if err := check(rec); err != nil {
		return Record{}, false, fmt.Errorf("submit %s: %w", rec.ID, err)
	}
	args := []any{
		rec.ID, rec.Thread, rec.Class, []byte(rec.Task), micros(rec.At), string(rec.Reply), rec.MergeKey, strings.Join(rec.Scopes, "\n"),
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
		MergeKey: rec.MergeKey, Before: r.number(3), Joins: r.text(4) == "1",
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
