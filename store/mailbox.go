package store

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
)

// Take absorbs the thread's next task into this run if it is due, not cancelled, never started, has lost no worker and
// has the same merge key. The absorbed task's stream then gets event. Take returns false if no task can be absorbed
// now. If last is set, false is final for this claim: tasks submitted from then on wait for their own turn. An
// absorbed task waits again when the run is over, unless [Claim.EndWith] or the checkpoint keeps it.
//
// Call Take from one goroutine at a time. A Take that failed may have succeeded in Redis; the next call then returns
// the same task. It returns [ErrStale] if the claim is lost.
func (c *Claim) Take(ctx context.Context, last bool, event json.RawMessage) (Record, bool, error) {
	if c.nonce == "" {
		c.nonce = rand.Text()
	}
	r, err := c.store.run(ctx, "take", c.ID(), c.Thread(), c.fence, c.nonce, last, []byte(event), c.store.cfg.EventCap)
	if err != nil {
		return Record{}, false, fmt.Errorf("take from %s: %w", c.Thread(), err)
	}
	if r.text(0) == "no" {
		return Record{}, false, nil
	}
	c.nonce = ""
	return r.record(r.text(1), 2), true, nil
}

// GiveBack returns absorbed tasks to waiting, in their old places. If last is set, the run absorbs nothing more. IDs
// that the run has not absorbed are ignored. It returns [ErrStale] like Take.
func (c *Claim) GiveBack(ctx context.Context, last bool, ids ...string) error {
	if _, err := c.store.run(ctx, "giveback", c.ID(), c.Thread(), c.fence, strings.Join(ids, " "), last); err != nil {
		return fmt.Errorf("give back to %s: %w", c.Thread(), err)
	}
	return nil
}

// Mail calls look at once and then, until ctx ends, whenever a task is submitted to the thread, and every Refresh in
// case a hint was lost or a task became due.
func (c *Claim) Mail(ctx context.Context, look func()) {
	_ = c.store.heed(ctx, c.store.key.mail(), c.Thread(), func() bool { look(); return false })
}

// Absorbed returns the tasks that a task's run has absorbed and not given back, in the order in which it absorbed
// them.
func (s *Store) Absorbed(ctx context.Context, id string) ([]Record, error) {
	ids, err := s.redis.ZRange(ctx, s.key.absorbed(id), 0, -1).Result()
	if err != nil {
		return nil, fmt.Errorf("read what %s absorbed: %w", id, err)
	}
	records, err := s.records(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("read what %s absorbed: %w", id, err)
	}
	return records, nil
}
