package tasks

import (
	"context"
	"sync"
	"time"

	"github.com/errand-fleet/errand/agent"
)

// health is what is known of the CLI. A good answer is believed for a while; a bad one is asked for again by each task, so that a
// remedy works at once.
type health struct {
	runner Runner
	min    string
	fresh  time.Duration // how long a good answer is believed

	asking sync.Mutex // one question at a time: it starts the CLI twice

	mu   sync.Mutex
	last agent.Health
	at   time.Time
}

// check asks the CLI.
func (h *health) check(ctx context.Context) {
	begun := time.Now()
	h.asking.Lock()
	defer h.asking.Unlock()
	if h.since(begun) {
		return // somebody has asked while we waited
	}
	answer := h.runner.Health(ctx, h.min)
	if ctx.Err() != nil {
		return // broken off: it says nothing of the CLI
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last, h.at = answer, time.Now()
}

// since reports whether there is an answer from after t; the zero time asks for any.
func (h *health) since(t time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.at.After(t)
}

func (h *health) good() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last.OK && time.Since(h.at) < h.fresh
}

// known is the latest answer.
func (h *health) known() agent.Health {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last
}

// problem is why no run can start, nil when one can.
func (h *health) problem(ctx context.Context) error {
	if !h.good() {
		h.check(ctx)
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if e := h.known().Error; e != nil {
		return e
	}
	return nil
}
