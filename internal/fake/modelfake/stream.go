package modelfake

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// stream writes server-sent events and flushes each, so that the client sees all text so far.
type stream struct {
	w    http.ResponseWriter
	pace time.Duration
}

// send streams the answer of the turn. An error means that the connection must be dropped: the client is gone, the
// server closes, or the turn demands it.
func (s stream) send(ctx context.Context, a answer, t Turn) error {
	s.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	s.w.Header().Set("Cache-Control", "no-cache")
	if err := s.event("message_start", object{"message": a.head}); err != nil {
		return err
	}
	if err := s.event("ping", object{}); err != nil {
		return err
	}

	blocks, broken := a.blocks, t.Hang || t.Cut
	if broken {
		blocks = blocks[:len(blocks)-a.tools]
	}
	for i, b := range blocks {
		if err := s.block(ctx, i, b); err != nil {
			return err
		}
		if broken && i == len(blocks)-1 {
			break // a stream that breaks leaves its block open
		}
		if err := s.event("content_block_stop", object{"index": i}); err != nil {
			return err
		}
	}

	switch {
	case t.Hang:
		<-ctx.Done()
		return context.Cause(ctx)
	case t.Cut:
		return errCut
	}
	delta := object{"stop_reason": a.stop, "stop_sequence": nil}
	if err := s.event("message_delta", object{"delta": delta, "usage": a.used(a.usage.Output)}); err != nil {
		return err
	}
	return s.event("message_stop", object{})
}

// block streams one block up to, but not including, its end.
func (s stream) block(ctx context.Context, i int, b block) error {
	if err := s.event("content_block_start", object{"index": i, "content_block": b.start}); err != nil {
		return err
	}
	for _, d := range b.deltas {
		if err := s.wait(ctx); err != nil {
			return err
		}
		if err := s.event("content_block_delta", object{"index": i, "delta": d}); err != nil {
			return err
		}
	}
	return nil
}

// event writes one event; its name is repeated in the data, as in the API.
func (s stream) event(name string, data object) error {
	data["type"] = name
	b, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	if _, err := fmt.Fprintf(s.w, "event: %s\ndata: %s\n\n", name, b); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := http.NewResponseController(s.w).Flush(); err != nil {
		return fmt.Errorf("flush %s: %w", name, err)
	}
	return nil
}

func (s stream) wait(ctx context.Context) error {
	if s.pace <= 0 {
		return ctx.Err()
	}
	select {
	case <-time.After(s.pace):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
