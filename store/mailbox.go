package store

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
)

// Take takes the thread's next task into the run of this one, if it is due, was not cancelled, was never begun, has seen no
// worker die and has the same kin: it is absorbed then, and event is in its stream. It is false when there is none for now; with last that is also for good, for this claim: what
// is submitted from then on waits for its own turn. A task that was taken waits again when the run is over, however that comes about,
// unless [Claim.EndWith] or the checkpoint says that it stays.
//
// One goroutine at a time takes. A Take that failed may have worked; the next one then finds the same task. [ErrStale] when the run is not
// ours any more.
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

// GiveBack lets absorbed tasks wait again, in their old places; with last the run takes nothing more. Those that it has not absorbed are
// left alone. [ErrStale] as for Take.
func (c *Claim) GiveBack(ctx context.Context, last bool, ids ...string) error {
	if _, err := c.store.run(ctx, "giveback", c.ID(), c.Thread(), c.fence, strings.Join(ids, " "), last); err != nil {
		return fmt.Errorf("give back to %s: %w", c.Thread(), err)
	}
	return nil
}

// Mail calls look, at once and until ctx ends, whenever there may be something to take: when a task is submitted to the thread, and every
// Refresh in case that a hint got lost or a task became due.
func (c *Claim) Mail(ctx context.Context, look func()) {
	_ = c.store.heed(ctx, c.store.key.mail(), c.Thread(), func() bool { look(); return false })
}

// Absorbed reads the tasks that a task's run has absorbed and not given back, in the order in which it took them.
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
