package keeper

import (
	"cmp"
	"context"
	"sync"
	"time"
)

// probeTimeout bounds an attempt to find out whether something works here. It takes milliseconds, and seconds where
// many programs want the processors.
const probeTimeout = 2 * time.Minute

// Unavailable says why no run can start.
type Unavailable struct {
	Problem, Remedy string

	Busy bool // the machine is too busy to find out: it may be possible soon
}

func (u *Unavailable) Error() string { return u.Problem + ": " + u.Remedy }

// Probe finds out whether something works here. Once it was seen to work, that is not checked again; if it does not
// work, it is tried again each time, so that a remedy works at once. The zero value is ready to use.
type Probe[T any] struct {
	Limit time.Duration // of an attempt; 0: 2 minutes

	mu      sync.Mutex
	found   *T          // nil: it was not seen to work
	current *attempt[T] // nil: none is under way
}

// attempt is what several starts may wait for.
type attempt[T any] struct {
	waiting     int
	cancel      context.CancelFunc
	done        chan struct{}
	found       T            // set when done is closed
	unavailable *Unavailable // so is this
}

// Find returns what try has found. Those who ask while an attempt is under way share it. Each of them stops waiting
// when its ctx ends, and the attempt ends when nobody waits for it: one run that is stopped does not make anything look
// broken for the others.
func (p *Probe[T]) Find(ctx context.Context, try func(context.Context) (T, *Unavailable)) (T, *Unavailable) {
	p.mu.Lock()
	if p.found != nil {
		defer p.mu.Unlock()
		return *p.found, nil
	}
	a := p.current
	if a == nil {
		a = p.begin(ctx, try)
	}
	a.waiting++
	p.mu.Unlock()

	select {
	case <-a.done:
		return a.found, a.unavailable
	case <-ctx.Done():
		p.leave(a)
		var none T
		return none, &Unavailable{Problem: ctx.Err().Error(), Remedy: "try it again", Busy: true}
	}
}

// begin starts an attempt. The caller holds the lock.
func (p *Probe[T]) begin(ctx context.Context, try func(context.Context) (T, *Unavailable)) *attempt[T] {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cmp.Or(p.Limit, probeTimeout))
	a := &attempt[T]{cancel: cancel, done: make(chan struct{})}
	p.current = a
	go func() {
		defer cancel()
		a.found, a.unavailable = try(ctx)
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.current == a {
			p.current = nil
		}
		if a.unavailable == nil {
			p.found = &a.found
		}
		close(a.done)
	}()
	return a
}

// leave ends an attempt that nobody waits for any more. What asks later makes another one.
func (p *Probe[T]) leave(a *attempt[T]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a.waiting--; a.waiting > 0 {
		return
	}
	a.cancel()
	if p.current == a {
		p.current = nil
	}
}
