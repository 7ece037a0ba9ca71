package protocol

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// Control speaks the CLI's control protocol: requests to the CLI, and the CLI's own requests. It is safe for concurrent
// use.
type Control struct {
	in          *Stdin
	stdinFailed func(error)

	mu      sync.Mutex
	last    int
	pending map[string]chan<- response
	asked   map[string]context.CancelFunc // the CLI's open requests, by ID
	dead    bool
	answers sync.WaitGroup // goroutines of Answer
}

// ErrGone is the error of a request whose answer cannot arrive any more.
var ErrGone = errors.New("the CLI has exited")

// Refusal is the error of a request that the CLI refuses.
type Refusal struct{ Message string }

func (e *Refusal) Error() string { return e.Message }

// NewControl returns a Control that writes to in. It calls stdinFailed if an answer cannot be written, also because the
// CLI has exited.
func NewControl(in *Stdin, stdinFailed func(error)) *Control {
	return &Control{in: in, stdinFailed: stdinFailed, pending: map[string]chan<- response{}, asked: map[string]context.CancelFunc{}}
}

// Request sends a control request to the CLI and waits for the answer. The error is a *Refusal if the CLI refuses, and
// ErrGone if it exits.
func (c *Control) Request(ctx context.Context, body map[string]any) (jsontext.Value, error) {
	reply := make(chan response, 1)
	c.mu.Lock()
	if c.dead {
		c.mu.Unlock()
		return nil, ErrGone
	}
	c.last++
	id := "errand-" + strconv.Itoa(c.last)
	c.pending[id] = reply
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.pending, id)
		c.mu.Unlock()
	}()
	line := map[string]any{"type": "control_request", "request_id": id, "request": body}
	if err := c.in.Send(line); err != nil {
		return nil, err
	}
	select {
	case r, ok := <-reply:
		switch {
		case !ok:
			return nil, ErrGone
		case r.Subtype != "success":
			return nil, &Refusal{fmt.Sprintf("control request %v: %s", body["subtype"], r.Error)}
		}
		return r.Response, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for answer to control request %v: %w", body["subtype"], context.Cause(ctx))
	}
}

// answered delivers a response to the Request that waits for it. It does not block.
func (c *Control) answered(r response) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if reply, ok := c.pending[r.RequestID]; ok {
		delete(c.pending, r.RequestID)
		reply <- r
	}
}

// Answer answers a request of the CLI on a new goroutine: an answer may take minutes, and several requests may be open.
func (c *Control) Answer(ctx context.Context, id string, answer func(context.Context) (any, error)) {
	ctx, cancel := context.WithCancel(ctx)
	c.mu.Lock()
	c.asked[id] = cancel
	c.mu.Unlock()
	c.answers.Go(func() {
		defer cancel()
		body, err := answer(ctx)
		c.mu.Lock()
		_, open := c.asked[id]
		delete(c.asked, id)
		c.mu.Unlock()
		if !open || ctx.Err() != nil {
			return // withdrawn, so there is nothing to answer
		}
		// request_id belongs inside response; at the top level it is ignored and the CLI hangs (CLI 2.1.329).
		response := map[string]any{"request_id": id}
		if err != nil {
			response["subtype"], response["error"] = "error", err.Error()
		} else {
			response["subtype"], response["response"] = "success", body
		}
		if err := c.in.Send(map[string]any{"type": "control_response", "response": response}); err != nil {
			c.stdinFailed(err)
		}
	})
}

// Open returns the number of the CLI's requests that are being answered.
func (c *Control) Open() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.asked)
}

// Wait returns when no request of the CLI is being answered. The contexts of all answers must have ended.
func (c *Control) Wait() { c.answers.Wait() }

// withdrawn cancels an open request of the CLI.
func (c *Control) withdrawn(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cancel, ok := c.asked[id]; ok {
		delete(c.asked, id)
		cancel()
	}
}

// Abort fails all requests that wait for an answer. Call it when the CLI's output has ended.
func (c *Control) Abort() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dead = true
	for id, reply := range c.pending {
		delete(c.pending, id)
		close(reply)
	}
}
