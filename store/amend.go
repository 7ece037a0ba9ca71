package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// Amend replaces the content of a waiting task that has never started, in one atomic step. It uses ID, Task, MergeKey,
// Scopes and Topic of rec. Topic must contain the ID in quotes, as JSON does, and is stored only if the thread's topic
// is still from the same task. edit names the change; later changes have greater names. Amend returns [ErrStale] after
// a later change, [ErrBegun] if the task has started, and [ErrEnded] if it has ended or was cancelled.
func (s *Store) Amend(ctx context.Context, rec Record, edit string) error {
	if len(rec.Task) > maxTask {
		return fmt.Errorf("amend %s: task of %d bytes, limit %d: %w", rec.ID, len(rec.Task), maxTask, ErrTooLarge)
	}
	_, err := s.run(ctx, "amend", rec.ID, []byte(rec.Task), rec.MergeKey, strings.Join(rec.Scopes, "\n"), []byte(rec.Topic),
		s.cfg.SessionTTL.Milliseconds(), edit)
	if err != nil {
		return fmt.Errorf("amend %s: %w", rec.ID, err)
	}
	return nil
}

// Withdraw is [Store.EndWaiting] for a task that has never started. It does not end a task that has.
func (s *Store) Withdraw(ctx context.Context, id string, ending json.RawMessage) (bool, error) {
	return s.endWaiting(ctx, id, ending, true)
}
