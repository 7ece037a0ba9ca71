package worker

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
)

// readyFor bounds the start of a CLI that is kept ready. The task's thread waits for it.
const readyFor = 5 * time.Second

// Fate is what became of a CLI that was kept ready.
type Fate string

// The fates.
const (
	ReadyUsed    Fate = "used"    // by the next run of its thread
	ReadyUnfit   Fate = "unfit"   // the next run of its thread needed another one
	ReadyExpired Fate = "expired" // there was no next run in time
	ReadyEvicted Fate = "evicted" // its slot or memory was needed, or the worker stopped
	ReadyDied    Fate = "died"
)

// Fates lists all of them.
var Fates = []Fate{ReadyUsed, ReadyUnfit, ReadyExpired, ReadyEvicted, ReadyDied}

// readyCLIs keeps CLIs ready for the next messages of threads whose run has just ended. They hold no claim and no slot:
// at most Config.ReadyCLIs exist, and only in slots and memory that no run needs. What depends on the slots is decided
// with their lock held, so that runs and CLIs together, also CLIs that are being started, never exceed the slots. It is
// safe for concurrent use; shrink and vacate may be called on nil.
type readyCLIs struct {
	*Config

	mu     sync.Mutex // may be locked while that of the slots is held, not the other way round
	closed bool
	list   []*readyCLI // the oldest first
	all    sync.WaitGroup
}

// readyCLI is one of them.
type readyCLI struct {
	*agent.Ready // nil while it is being started
	thread       string
	stop         context.CancelFunc // of its start

	leaves chan Fate     // gets its fate from what removes it from the list; capacity 1
	gone   chan struct{} // closed when all its processes are dead
}

// prepare notes how the CLI of the thread's next run is probably started, if it should be kept ready: for people, and
// without a repository, because a clone is updated before the CLI may see it.
func (k *readyCLIs) prepare(r *run, j job, b briefing, s setting, spec agent.Spec) {
	if k.ReadyCLIs > 0 && j.task.Class == tasks.Interactive && s.place.Clone.Dir == "" && !b.Fresh &&
		r.result.Outcome == agent.Done && len(r.result.Session.Data) > 0 {
		spec.Resume, spec.Ready, spec.Checkpoint = &r.result.Session, nil, nil
		r.next = &spec
	}
}

// start starts the CLI that prepare has noted. The oldest one makes room if there are too many.
func (k *readyCLIs) start(r *run) {
	if r.next == nil || r.ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(r.ctx, readyFor)
	defer cancel()
	c := &readyCLI{thread: r.claim.Thread(), stop: cancel, leaves: make(chan Fate, 1), gone: make(chan struct{})}
	if !r.slot.spare(c) {
		return
	}
	cli, err := k.Runner.Ready(ctx, *r.next)
	if err != nil {
		k.forget(c)
		if !errors.Is(err, agent.ErrNotReady) && ctx.Err() == nil {
			k.Log.Warn("keep a CLI ready", "run", r.claim.ID(), "err", err)
		}
		return
	}
	k.mu.Lock()
	c.Ready = cli
	k.mu.Unlock()
	go k.supervise(c)
}

// add enters a CLI that is about to be started, if there is a place, and reports whether there was one. The slots' lock
// is held.
func (k *readyCLIs) add(c *readyCLI, places int) bool {
	places = min(places, k.ReadyCLIs)
	if places <= 0 {
		return false
	}
	k.shrink(places - 1)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return false
	}
	k.list = append(k.list, c)
	k.all.Add(1)
	return true
}

// forget removes a CLI that did not start.
func (k *readyCLIs) forget(c *readyCLI) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.list = slices.DeleteFunc(k.list, func(o *readyCLI) bool { return o == c })
	close(c.gone)
	k.all.Done()
}

// supervise ends a CLI at its time.
func (k *readyCLIs) supervise(c *readyCLI) {
	defer k.all.Done()
	defer close(c.gone)
	old := time.NewTimer(k.Timing.Ready)
	defer old.Stop()
	itself := func(o *readyCLI) bool { return o == c }
	var fate Fate
	select {
	case fate = <-c.leaves:
	case <-old.C:
		k.remove(itself, ReadyExpired)
		fate = <-c.leaves // a run may have been faster
	case <-c.Done():
		k.remove(itself, ReadyDied)
		fate = <-c.leaves
	}
	if fate != ReadyUsed { // then its run decides
		k.Meter.Ready(fate)
		c.End()
	}
}

// remove takes a CLI that fits from the list and gives it its fate. It returns nil if none exists.
func (k *readyCLIs) remove(fits func(*readyCLI) bool, fate Fate) *readyCLI {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := slices.IndexFunc(k.list, fits)
	if i < 0 {
		return nil
	}
	c := k.list[i]
	k.list = slices.Delete(k.list, i, i+1)
	c.leaves <- fate
	c.stop()
	return c
}

// take returns the CLI of a thread, or nil. The caller gives it to a run.
func (k *readyCLIs) take(thread string) *agent.Ready {
	if c := k.remove(func(c *readyCLI) bool { return c.thread == thread && c.Ready != nil }, ReadyUsed); c != nil {
		return c.Ready
	}
	return nil
}

// used reports what a run did with the CLI that it was given.
func (k *readyCLIs) used(s agent.Spec, res agent.Result) {
	switch {
	case s.Ready == nil:
	case res.Ready:
		k.Meter.Ready(ReadyUsed)
	default:
		k.Meter.Ready(ReadyUnfit)
	}
}

// shrink ends the oldest CLIs until n are left, and does not wait for it. It returns them.
func (k *readyCLIs) shrink(n int) (ended []*readyCLI) {
	for k != nil {
		c := k.remove(func(*readyCLI) bool { return len(k.list) > max(n, 0) }, ReadyEvicted)
		if c == nil {
			break
		}
		ended = append(ended, c)
	}
	return ended
}

// vacate ends all CLIs and returns when their memory is free. It reports whether there were any. The slots' lock is
// held, so that no two runs count on the same memory.
func (k *readyCLIs) vacate() bool {
	ended := k.shrink(0)
	for _, c := range ended {
		<-c.gone
	}
	return len(ended) > 0
}

// close ends all CLIs, and no more are started. It returns when they are gone.
func (k *readyCLIs) close() {
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	k.shrink(0)
	k.all.Wait()
}
