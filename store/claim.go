package store

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Claim is the exclusive, expiring right to run one task, and with it its thread. It lives while [Claim.Keep] runs,
// and survives [Claim.End], until [Claim.Return] or [Claim.Release].
type Claim struct {
	store  *Store
	record Record
	token  string // the value of the claim key
	fence  string // record.Fence as scripts compare it

	fields   []any       // of the record at the time of the claim, names and values alternating
	over     atomic.Bool // this holder has ended the task or returned it to waiting
	restored atomic.Bool // see Restored

	nonce string // of the Take that is still unanswered; owned by Take's caller

	given sync.Once     // closes done
	done  chan struct{} // closed when the holder gives the claim up; ends Keep
}

// Claim claims a waiting task for a worker, so that the task is running. It returns, checked in this order,
// [ErrNotFound], [ErrEnded], [ErrStale] if another delivery is the valid one, [ErrRunning], [*NotDue], [ErrBusy] or
// [*Full]. After the last two the task is blocked: this delivery is over, and [Store.Ready] names the next one when the
// thread or a place is free. A cancelled task can be claimed: [Claim.Record] has the cancellation.
func (s *Store) Claim(ctx context.Context, id string, delivery int, worker string, caps ...Cap) (*Claim, error) {
	args := []any{
		id, delivery, worker, rand.Text(), s.cfg.ClaimTTL.Milliseconds(), s.lease().Milliseconds(),
		time.Now().UnixMicro(),
	}
	r, err := s.run(ctx, "claim", append(args, capArgs(caps)...)...)
	if err != nil {
		return nil, fmt.Errorf("claim %s: %w", id, err)
	}
	token := r.text(1)
	fence, _, _ := strings.Cut(token, " ")
	fields, _ := r[2].([]any)
	return &Claim{
		store: s, record: r.record(id, 2), token: token, fence: fence, fields: fields, done: make(chan struct{}),
	}, nil
}

// ID returns the task's ID.
func (c *Claim) ID() string { return c.record.ID }

// Thread returns the task's thread.
func (c *Claim) Thread() string { return c.record.Thread }

// Fence returns the fencing token, which is greater than that of every earlier claim.
func (c *Claim) Fence() int64 { return c.record.Fence }

// Record returns the task as it was when it was claimed, already running.
func (c *Claim) Record() Record { return c.record }

// End gives the running task its ending: the task leaves its thread, enters the outbox, and its events get the end
// mark. The holder keeps the claim, so that it can post and clean up before the thread's next task starts. End returns
// [ErrStale] if the claim is lost. Absorbed tasks wait again; see [Claim.EndWith].
func (c *Claim) End(ctx context.Context, ending json.RawMessage) error {
	return c.EndWith(ctx, ending, Covered{})
}

// Covered are absorbed tasks that end with their run's task and share its final message.
type Covered struct {
	IDs    []string
	Ending json.RawMessage // of each; opaque
}

// EndWith is End for a run that has absorbed tasks. The covered tasks end with it, have no message of their own, and
// expire after Retention. The other absorbed tasks wait again.
func (c *Claim) EndWith(ctx context.Context, ending json.RawMessage, with Covered) error {
	if len(ending) > maxTask {
		return fmt.Errorf("end %s: ending of %d bytes, limit %d: %w", c.ID(), len(ending), maxTask, ErrTooLarge)
	}
	r, err := c.run(ctx, "end", c.ID(), c.Thread(), c.fence, []byte(ending), c.store.cfg.EventCap,
		c.store.cfg.Retention.Milliseconds(),
		strings.Join(with.IDs, " "), []byte(with.Ending))
	if errors.Is(err, ErrStale) {
		err = c.restore(ctx, ending)
	}
	if err != nil {
		return fmt.Errorf("end %s: %w", c.ID(), err)
	}
	c.over.Store(true)
	c.store.values.replace(ctx, r.text(1))
	return nil
}

// Wait describes how a started task waits.
type Wait struct {
	At     time.Time // not to be started before; zero = at once
	Why    string    // for display, at most a sentence; deleted by the next claim
	Counts bool      // the attempt counts; otherwise it is taken back
	Parked string    // the cause for which the task is parked, one word, which Record.Parks counts; empty: it is not
	Tell   string    // the key with which [Store.Explain] has to say Why, whoever does; empty: nobody has to
}

// Return puts the running task back to waiting, for a new delivery and in its old place, and gives the claim up. It
// returns [ErrStale] if the claim is lost.
//
// It ends [Claim.Keep] even if it fails: no process of the run is alive by then, so the claim may expire.
func (c *Claim) Return(ctx context.Context, w Wait) error {
	c.giveUp()
	_, err := c.run(ctx, "return", c.ID(), c.Thread(), c.fence, c.token, micros(w.At), w.Why, w.Counts,
		w.Parked, w.Tell)
	if err != nil {
		return fmt.Errorf("return %s: %w", c.ID(), err)
	}
	c.over.Store(true)
	return nil
}

// Release gives the claim up. After End, the thread's next task may start. A task that is still running is then
// treated as if its worker had died. Release returns [ErrStale] if another holder has the thread. Like Return it
// always ends [Claim.Keep].
func (c *Claim) Release(ctx context.Context) error {
	c.giveUp()
	_, err := c.store.run(ctx, "release", c.ID(), c.Thread(), c.fence, c.token)
	return wrapf(err, "release %s", c.ID())
}

// giveUp must run before the script, so that a refresh that finds the claim gone does not report a loss.
func (c *Claim) giveUp() { c.given.Do(func() { close(c.done) }) }

// refresh extends the claim, or restores it if Redis lost it, and reads the tombstone. It returns [ErrStale] if the
// claim is lost.
func (c *Claim) refresh(ctx context.Context) (by, cause string, err error) {
	ttl, lease := c.store.cfg.ClaimTTL.Milliseconds(), c.store.lease().Milliseconds()
	r, err := c.run(ctx, "refresh", c.ID(), c.Thread(), c.fence, c.token, ttl, lease)
	return r.text(1), r.text(2), wrapf(err, "refresh %s", c.ID())
}

// run executes a step of the holder. If Redis has lost the task (FLUSHALL, another volume), run first restores it as
// it was claimed, because only the holder still has it. Everything stored since the claim is lost. It returns
// [ErrStale] for a task that was taken over or has ended.
func (c *Claim) run(ctx context.Context, name string, args ...any) (reply, error) {
	r, err := c.store.run(ctx, name, args...)
	if !errors.Is(err, ErrStale) {
		return r, err
	}
	if err := c.restore(ctx, nil); err != nil {
		return nil, err
	}
	return c.store.run(ctx, name, args...)
}

// restore restores the record of a task that Redis has lost. If another task of the thread has started since, the
// right to run is lost too. Then restore only stores the ending, if there is one, and puts the final message into the
// outbox.
func (c *Claim) restore(ctx context.Context, ending json.RawMessage) error {
	if c.over.Load() {
		return ErrStale
	}
	args := []any{
		c.ID(), c.Thread(), c.fence, c.token, c.store.cfg.ClaimTTL.Milliseconds(), c.store.lease().Milliseconds(),
		[]byte(ending), c.store.cfg.EventCap,
	}
	if _, err := c.store.run(ctx, "restore", append(args, c.fields...)...); err != nil {
		return fmt.Errorf("put back: %w", err)
	}
	c.restored.Store(true)
	return nil
}

// Restored reports whether Redis had lost the task and this holder restored it.
func (c *Claim) Restored() bool { return c.restored.Load() }

// Watch has the callbacks of [Claim.Keep], which may be nil. Keep calls each at most once from its own goroutine. They
// delay the next renewal, so they should cancel a context and return.
type Watch struct {
	Cancelled func(by, cause string) // the task was cancelled; the claim remains
	// the claim is gone: ErrStale (perhaps another holder) or ErrOutage (no reply from Redis)
	Lost func(error)
}

// Keep renews the claim every Refresh until ctx ends, the claim is given up, or it is lost. Call it once per claim.
// Each renewal reads the task's cancellation; a published hint makes Keep renew at once. If Redis restarted and lost
// the claim while the task is still the holder's, the claim is restored. While Redis does not answer, Keep retries
// five times as often for Outage.
func (c *Claim) Keep(ctx context.Context, w Watch) {
	cfg := c.store.cfg
	cancelled, leave := c.store.hints.listen(subject{c.store.key("cancel"), c.ID()})
	defer leave()
	k := &keeping{
		Claim: c, watch: w, renewals: make(chan renewal, 1), next: time.NewTimer(cfg.Refresh),
		outage: time.NewTimer(cfg.Outage),
	}
	defer k.next.Stop()
	defer k.outage.Stop()
	k.lastErr = errors.New("no answer yet")
	k.renew(ctx) // a cancellation since the claim is not announced again
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.done:
			return
		case <-k.outage.C:
			k.lost(ctx, fmt.Errorf("keep %s: %w: %w", c.ID(), ErrOutage, k.lastErr))
			return
		case <-cancelled:
			k.renew(ctx)
		case <-k.next.C:
			k.renew(ctx)
		case r := <-k.renewals:
			if !k.handle(ctx, r) {
				return
			}
		}
	}
}

// keeping is the state of a Keep. It belongs to Keep's goroutine.
type keeping struct {
	*Claim
	watch        Watch
	renewals     chan renewal // one at a time; buffered, so that its goroutine can end after Keep
	next, outage *time.Timer

	renewing, again, cancelled bool
	lastErr                    error
}

// renewal is the result of a renewal.
type renewal struct {
	started   time.Time
	by, cause string
	err       error
}

// renew renews the claim on another goroutine, at most one at a time: a client blocks for its timeouts if Redis hangs,
// and neither Outage nor the end of ctx may wait for that.
func (k *keeping) renew(ctx context.Context) {
	if k.again = k.renewing; k.again {
		return
	}
	k.renewing = true
	go func() {
		r := renewal{started: time.Now()}
		ctx, cancel := context.WithTimeout(ctx, k.store.cfg.ClaimTTL) // a later answer is worthless
		defer cancel()
		r.by, r.cause, r.err = k.refresh(ctx)
		k.renewals <- r
	}()
}

// handle handles the result of a renewal. It returns false if the claim is lost.
func (k *keeping) handle(ctx context.Context, r renewal) bool {
	k.renewing = false
	switch {
	case errors.Is(r.err, ErrStale):
		k.lost(ctx, fmt.Errorf("keep %s: %w", k.ID(), ErrStale))
		return false
	case r.err != nil:
		k.lastErr = r.err
		k.next.Reset(k.store.cfg.Refresh / 5)
	default:
		k.next.Reset(k.store.cfg.Refresh)
		k.outage.Reset(k.store.cfg.Outage - time.Since(r.started))
		if r.cause != "" && !k.cancelled && k.watch.Cancelled != nil {
			k.cancelled = true
			k.watch.Cancelled(r.by, r.cause)
		}
	}
	if k.again {
		k.renew(ctx)
	}
	return true
}

// lost reports the loss of the claim, unless the holder gave it up.
func (k *keeping) lost(ctx context.Context, err error) {
	select {
	case <-k.done:
		return
	default:
	}
	if k.watch.Lost != nil && ctx.Err() == nil {
		k.watch.Lost(err)
	}
}

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
	_, err := c.store.run(ctx, "giveback", c.ID(), c.Thread(), c.fence, strings.Join(ids, " "), last)
	return wrapf(err, "give back to %s", c.Thread())
}

// Mail calls look at once and then, until ctx ends, whenever a task is submitted to the thread, and every Refresh in
// case a hint was lost or a task became due.
func (c *Claim) Mail(ctx context.Context, look func()) {
	_ = c.store.hints.waitFor(ctx, c.store.key("mail"), c.Thread(), func() bool { look(); return false })
}

// Absorbed returns the tasks that a task's run has absorbed and not given back, in the order in which it absorbed
// them.
func (s *Store) Absorbed(ctx context.Context, id string) ([]Record, error) {
	records, err := s.indexed(ctx, s.key("absorbed", id), 0)
	return records, wrapf(err, "read what %s absorbed", id)
}
