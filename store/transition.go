package store

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Silent returns for how long runs have been without their claims, by ID and by Redis' clock, in one round trip. The
// time is 0 at the first call for a run in this term; see [Leader.Lead]. If the holder restores the claim, the time
// starts over. Tasks that are claimed or no longer run are left out.
func (s *Store) Silent(ctx context.Context, term string, runs ...LiveRecord) (map[string]time.Duration, error) {
	if len(runs) == 0 {
		return nil, nil
	}
	args := []any{term}
	for _, run := range runs {
		args = append(args, run.ID, run.Fence)
	}
	r, err := s.run(ctx, "silent", args...)
	if err != nil {
		return nil, fmt.Errorf("look for the claims of %d runs: %w", len(runs), err)
	}
	silent := map[string]time.Duration{}
	for i, run := range runs {
		if r.text(i+1) != "" {
			silent[run.ID] = time.Duration(r.number(i+1)) * time.Microsecond
		}
	}
	return silent, nil
}

// Requeue makes a new delivery the valid one, for a task whose delivery was lost or whose worker died or has no free
// slot. delivery and fence are the values that it saw; Requeue returns [ErrStale] if either has
// changed, the task has ended, or it is running and claimed. A running task waits again, in its old place. crashed
// counts a lost run, unless the run was idle; see [Claim.Idle]. Requeue returns the record after the change.
func (s *Store) Requeue(ctx context.Context, id string, delivery int, fence int64, crashed bool) (Record, error) {
	r, err := s.run(ctx, "requeue", id, delivery, fence, crashed, rand.Text())
	if err != nil {
		return Record{}, fmt.Errorf("requeue %s: %w", id, err)
	}
	return r.record(id, 1), nil
}

// EndWaiting ends a waiting task (withdrawn, refused) and puts it into the outbox, due now. It returns false and
// changes nothing if the task does not wait: then its run decides the ending, or it has ended. Absorbed tasks that
// stayed with it while it waits end with it.
func (s *Store) EndWaiting(ctx context.Context, id string, ending json.RawMessage) (bool, error) {
	return s.endWaiting(ctx, id, ending, false)
}

func (s *Store) endWaiting(ctx context.Context, id string, ending json.RawMessage, untouched bool) (bool, error) {
	if len(ending) > maxTask {
		return false, fmt.Errorf("end waiting %s: ending of %d bytes, limit %d: %w", id, len(ending),
			maxTask, ErrTooLarge)
	}
	r, err := s.run(ctx, "endwaiting", id, []byte(ending), s.cfg.EventCap, s.cfg.Retention.Milliseconds(),
		rand.Text(), untouched)
	return r.text(0) == "ok", wrapf(err, "end waiting %s", id)
}

// Cancel writes the tombstone of a task that waits or runs, and then sends the holder a hint. The first cancel wins;
// later ones, and one after the end, change nothing. Cancel does not stop the run itself: see [Watch], and
// [Store.EndWaiting] for a waiting task. The cause "taken" counts only for a run, and is forgotten if the task waits
// again. Cancel returns the record after the change. For an absorbed task it returns the record of the task whose run
// has to stop. cause must not be empty.
func (s *Store) Cancel(ctx context.Context, id, by, cause string) (Record, error) {
	if cause == "" {
		return Record{}, fmt.Errorf("cancel %s: %w", id, errors.New("no cause"))
	}
	r, err := s.run(ctx, "cancel", id, by, cause)
	if err != nil {
		return Record{}, fmt.Errorf("cancel %s: %w", id, err)
	}
	return r.record(r.text(1), 2), nil
}

// Retry makes an ended task wait again under a new delivery, due at once, as if it had never run: without ending,
// tombstone, attempts and crashes, and no longer absorbed. It keeps its place in the thread, and its events continue
// after the earlier ones. Retry returns [ErrNotEnded] if the task has not ended, and [ErrUnposted] while the final
// message that it shares with absorbed tasks is not posted.
func (s *Store) Retry(ctx context.Context, id string, by json.RawMessage) (Record, error) {
	r, err := s.run(ctx, "retry", id, rand.Text(), []byte(by))
	if err != nil {
		return Record{}, fmt.Errorf("retry %s: %w", id, err)
	}
	return r.record(id, 1), nil
}

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

// Submit stores a new task as waiting, in the thread that rec.Thread resolves to (see [Threads.Alias]). It reads the
// fields ID, Thread, Class, Pool, Task, Scopes, MergeKey, Topic, At and Reply of rec. It is idempotent by ID: if the
// record exists, in whatever state, Submit returns it unchanged with created = false. The caller enqueues the first
// delivery of a task that is due and not blocked (see [Record.Blocked]); [Store.Ready] names the task a little later in
// case it does not.
//
// It returns [ErrTooLarge] if the task exceeds 1 MiB, [ErrSpent] if the message was used as an answer before (see
// [Questions.Answer]), and [*OverBudget] if one of today's budgets is used up. Unless rec.Reply is [NoReply], it
// stores nothing and returns [*OpenQuestion] if the thread's running task has asked something; [OnlyReply] returns
// [ErrNoQuestion] if it has not.
func (s *Store) Submit(ctx context.Context, rec Record, budgets ...Budget) (stored Record, created bool, err error) {
	if err := check(rec); err != nil {
		return Record{}, false, fmt.Errorf("submit %s: %w", rec.ID, err)
	}
	look := time.Now().Add(lookSoon)
	if rec.At.After(time.Now()) {
		look = rec.At
	}
	args := []any{
		rec.ID, rec.Thread, rec.Class, []byte(rec.Task), micros(rec.At), string(rec.Reply), rec.MergeKey,
		strings.Join(rec.Scopes, "\n"), []byte(rec.Topic), s.cfg.SessionTTL.Milliseconds(), rec.Pool, micros(look),
	}
	r, err := s.run(ctx, "submit", append(args, budgetArgs(budgets)...)...)
	if err != nil {
		return Record{}, false, fmt.Errorf("submit %s: %w", rec.ID, err)
	}
	if r.text(0) == "exists" {
		return r.record(rec.ID, 1), false, nil
	}
	return Record{
		ID: rec.ID, Thread: r.text(2), Class: rec.Class, Pool: rec.Pool, Task: rec.Task, Scopes: rec.Scopes,
		State: Waiting, At: rec.At.Truncate(time.Microsecond).UTC(), Created: fromMicros(r.text(1)),
		MergeKey: rec.MergeKey, Before: r.number(3), Joins: r.text(4) == "1", Blocked: blocked(r.text(5)),
	}, true, nil
}

// How soon Ready names a task again that still waits: after it was named, and after its delivery was made.
const (
	lookSoon  = 5 * time.Second
	lookLater = 10 * time.Minute
)

// Delivery is what brings a waiting task to a worker.
type Delivery struct {
	ID     string // of the task
	Queue  string
	Number int
	Called bool // a place is free for the task: it has waited for that, and goes first
}

// Ready names at most n deliveries that the caller makes sure of: those of tasks that wait and are due, or have waited
// for long. It names each of them again soon while its task waits, so none is lost if the caller fails or dies, unless
// Delivered is told that it is in its queue.
func (s *Store) Ready(ctx context.Context, n int) ([]Delivery, error) {
	now := time.Now()
	r, err := s.run(ctx, "ready", micros(now), micros(now.Add(lookSoon)), n)
	if err != nil {
		return nil, fmt.Errorf("look for tasks without deliveries: %w", err)
	}
	var list []Delivery
	for i := 1; i+4 < len(r); i += 5 {
		list = append(list, Delivery{r.text(i), QueueOf(r.text(i+1), r.text(i+2)), r.number(i + 3), r.text(i+4) != ""})
	}
	return list, nil
}

// Delivered notes that deliveries are in their queues. Ready names them again in ten minutes. It ignores those of tasks
// that have another delivery or no longer wait.
func (s *Store) Delivered(ctx context.Context, made ...Delivery) error {
	if len(made) == 0 {
		return nil
	}
	args := []any{micros(time.Now().Add(lookLater))}
	for _, d := range made {
		args = append(args, d.ID, d.Number)
	}
	_, err := s.run(ctx, "delivered", args...)
	return wrapf(err, "note deliveries")
}

// Wake makes those of some waiting tasks ready whose turn it is, although no step has done it: a claim has expired,
// another version stored them, or Redis lost a part of a list.
func (s *Store) Wake(ctx context.Context, ids ...string) error {
	if len(ids) == 0 {
		return nil
	}
	args := []any{s.cfg.ClaimTTL.Milliseconds()}
	for _, id := range ids {
		args = append(args, id)
	}
	_, err := s.run(ctx, "wake", args...)
	return wrapf(err, "wake tasks")
}

// CallUp notes the caps for Submit. It makes the first in each line ready if there are places for them that no step has
// given out: a cap was raised, a place was not freed but has expired, or a task that was to take a place did not come.
func (s *Store) CallUp(ctx context.Context, caps ...Cap) error {
	_, err := s.run(ctx, "callup", capArgs(caps)...)
	return wrapf(err, "call up waiting tasks")
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
	case slices.ContainsFunc(rec.Scopes, func(s string) bool {
		return !strings.Contains(s, ":") || strings.Contains(s, "\n")
	}):
		return errors.New("a scope is one line, <kind>:<name>")
	case len(rec.Task) > maxTask:
		return fmt.Errorf("task of %d bytes, limit %d: %w", len(rec.Task), maxTask, ErrTooLarge)
	}
	return nil
}

// Amend replaces the content of a waiting task that has never started, in one atomic step. It uses ID, Task, MergeKey,
// Scopes and Topic of rec. Topic must contain the ID in quotes, as JSON does, and is stored only if the thread's topic
// is still from the same task. edit names the change; later changes have greater names. Amend returns [ErrStale] after
// a later change, [ErrBegun] if the task has started, and [ErrEnded] if it has ended or was cancelled.
func (s *Store) Amend(ctx context.Context, rec Record, edit string) error {
	if len(rec.Task) > maxTask {
		return fmt.Errorf("amend %s: task of %d bytes, limit %d: %w", rec.ID, len(rec.Task), maxTask, ErrTooLarge)
	}
	_, err := s.run(ctx, "amend", rec.ID, []byte(rec.Task), rec.MergeKey, strings.Join(rec.Scopes, "\n"),
		[]byte(rec.Topic), s.cfg.SessionTTL.Milliseconds(), edit)
	return wrapf(err, "amend %s", rec.ID)
}

// Withdraw is [Store.EndWaiting] for a task that has never started. It does not end a task that has.
func (s *Store) Withdraw(ctx context.Context, id string, ending json.RawMessage) (bool, error) {
	return s.endWaiting(ctx, id, ending, true)
}
