package worker

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// poller decides when asynq asks Redis for deliveries. By itself asynq polls each queue all the time, and so a fleet of
// 60 idle workers would send 18,000 commands a second. poller is a hook of asynq's Redis client: it holds a poll back
// until a queue was announced (see [store.Store.Announced]) or might have been, and answers polls of queues that are
// empty or whose class is full.
//
// It is safe for concurrent use.
type poller struct {
	store  *store.Store
	queues []string       // of the worker's pool, the most urgent class first
	limits map[string]int // deliveries of a queue that this worker processes at once

	mu   sync.Mutex
	look map[string]bool // the queue may have a delivery
	busy map[string]int  // deliveries that are being processed
	more bool            // the last request to forward made deliveries pending; asynq repeats it until it makes none

	peers *atomic.Int64 // live workers of the pool, with this one; 0 if unknown
	wake  chan struct{} // has a token when look or busy changed
	once  sync.Once
	quit  chan struct{} // closed by stop
}

const (
	// pollAnyway is how long a poll is held back at most, ± 50 %, because announcements can be lost.
	pollAnyway = 3 * time.Second
	// forwarders is how many workers of a pool make the due deliveries of a class pending, each second, on average. One
	// would do; more make it unlikely that none does.
	forwarders = 3
)

func newPoller(s *store.Store, pool string, slots int, peers *atomic.Int64) *poller {
	p := &poller{
		store: s, limits: map[string]int{}, look: map[string]bool{}, busy: map[string]int{},
		peers: peers, wake: make(chan struct{}, 1), quit: make(chan struct{}),
	}
	for _, class := range tasks.Classes {
		queue := store.QueueOf(pool, class)
		p.queues = append(p.queues, queue)
		p.limits[queue] = SlotsOf(class, slots)
		p.look[queue] = true
	}
	return p
}

// concurrency returns how many deliveries asynq may process at once.
func (p *poller) concurrency() (sum int) {
	for _, n := range p.limits {
		sum += n
	}
	return sum
}

// start notes the announcements of all queues until stop.
func (p *poller) start() {
	for _, queue := range p.queues {
		go p.listen(queue)
	}
}

func (p *poller) listen(queue string) {
	due, leave := p.store.Announced(queue)
	defer leave()
	for {
		select {
		case <-due:
			p.note(queue)
		case <-p.quit:
			return
		}
	}
}

// note makes the next poll of a queue reach Redis.
func (p *poller) note(queue string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.look[queue] = true
	signal(p.wake)
}

// done records that a delivery has been processed.
func (p *poller) done(queue string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy[queue]--
	signal(p.wake)
}

// stop answers all polls from now on, so that asynq's loop can end.
func (p *poller) stop() { p.once.Do(func() { close(p.quit) }) }

// DialHook implements redis.Hook.
func (p *poller) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessPipelineHook implements redis.Hook.
func (p *poller) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// ProcessHook implements redis.Hook.
func (p *poller) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		switch what, queue := tasks.RequestOf(cmd); what {
		case tasks.Dequeue:
			return p.dequeue(ctx, queue, cmd, next)
		case tasks.Forward:
			return p.forward(ctx, queue, cmd, next)
		}
		return next(ctx, cmd)
	}
}

// dequeue passes a poll to Redis if the class may have a delivery and is not full. A poll of the last queue first waits
// until one of the classes is worth a poll: asynq then starts again with the most urgent one.
func (p *poller) dequeue(ctx context.Context, queue string, cmd redis.Cmder, next redis.ProcessHook) error {
	if !p.begin(queue) {
		if queue == p.queues[len(p.queues)-1] {
			p.await()
		}
		cmd.SetErr(redis.Nil) // for asynq: the queue is empty
		return redis.Nil
	}
	err := next(ctx, cmd)
	if err != nil { // nothing was taken
		p.done(queue)
	}
	if err != redis.Nil { //nolint:errorlint // as asynq compares it
		p.note(queue) // there may be more, or Redis did not answer
	}
	return err
}

// begin reports whether a class is worth a poll, and then counts the delivery that the poll may take.
func (p *poller) begin(queue string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped() || !p.worthwhile(queue) {
		return false
	}
	p.look[queue] = false
	p.busy[queue]++
	return true
}

// worthwhile is called with mu held.
func (p *poller) worthwhile(queue string) bool {
	return p.look[queue] && p.busy[queue] < p.limits[queue]
}

func (p *poller) stopped() bool {
	select {
	case <-p.quit:
		return true
	default:
		return false
	}
}

// await returns when a class is worth a poll.
func (p *poller) await() {
	anyway := time.NewTimer(around(pollAnyway))
	defer anyway.Stop()
	for {
		p.mu.Lock()
		found := slices.ContainsFunc(p.queues, p.worthwhile)
		p.mu.Unlock()
		if found {
			return
		}
		select {
		case <-p.wake:
		case <-p.quit:
			return
		case <-anyway.C:
			p.mu.Lock()
			for _, queue := range p.queues {
				p.look[queue] = true
			}
			p.mu.Unlock()
			return
		}
	}
}

// forward passes a request to Redis on behalf of the pool, now and then. A request moves at most 100 deliveries, and
// asynq repeats it until it moves none: the worker that has begun continues, or thousands that are due at once would
// come a hundred at a time. Other workers may have to take what was moved.
func (p *poller) forward(ctx context.Context, queue string, cmd redis.Cmder, next redis.ProcessHook) error {
	answer, ok := cmd.(*redis.Cmd)
	if !ok {
		return next(ctx, cmd)
	}
	if !p.forwards() {
		answer.SetVal(int64(0))
		return nil
	}
	err := next(ctx, cmd)
	if n, _ := answer.Int(); err == nil && n > 0 {
		p.mu.Lock()
		p.more = true
		p.mu.Unlock()
		p.note(queue)
		return p.store.Announce(ctx, queue)
	}
	return err
}

// forwards reports whether this worker forwards now. A stopped poller does not, so that asynq's loop can end.
func (p *poller) forwards() bool {
	p.mu.Lock()
	more := p.more
	p.more = false
	p.mu.Unlock()
	return !p.stopped() && (more || rand.Int64N(max(p.peers.Load(), 1)) < forwarders) //nolint:gosec // no secret
}
