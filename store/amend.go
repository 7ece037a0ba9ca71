package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// Amend replaces what a task is that waits and was never begun, in the same step as the look: of rec it reads ID, Task, MergeKey, Scopes and
// Topic, which has to name the ID in quotes, as JSON does, and counts only while the thread's topic is of the same task. edit names the
// change, later ones by greater names: [ErrStale] after a later one. [ErrBegun], and [ErrEnded] also when it was cancelled.
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

// Withdraw is [Store.EndWaiting] for a task that was never begun: one that has is not ended.
func (s *Store) Withdraw(ctx context.Context, id string, ending json.RawMessage) (bool, error) {
	return s.endWaiting(ctx, id, ending, true)
}
