package agent

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// control speaks the CLI's control protocol: our requests to it, and its requests to us. Safe for concurrent use.
type control struct {
	in   *stdin
	deaf func(error)

	mu      sync.Mutex
	last    int
	pending map[string]chan<- wireResponse
	asked   map[string]context.CancelFunc // the CLI's open questions, by its request id
	dead    bool
	answers sync.WaitGroup // goroutines of Asked
}

// errGone fails a request whose answer cannot come any more.
var errGone = errors.New("the CLI has exited")

// controlError is the CLI's refusal of a request.
type controlError struct{ message string }

func (e *controlError) Error() string { return e.message }

// newControl makes one whose deaf is told that the CLI does not take an answer, if only because it is gone.
func newControl(in *stdin, deaf func(error)) *control {
	return &control{in: in, deaf: deaf, pending: map[string]chan<- wireResponse{}, asked: map[string]context.CancelFunc{}}
}

// Request sends a control request and waits for its answer.
func (c *control) Request(ctx context.Context, body map[string]any) (jsontext.Value, error) {
	reply := make(chan wireResponse, 1)
	c.mu.Lock()
	if c.dead {
		c.mu.Unlock()
		return nil, errGone
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
			return nil, errGone
		case r.Subtype != "success":
			return nil, &controlError{fmt.Sprintf("control request %v: %s", body["subtype"], r.Error)}
		}
		return r.Response, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for answer to control request %v: %w", body["subtype"], context.Cause(ctx))
	}
}

// Answered hands a response to whoever waits for it. It does not block.
func (c *control) Answered(r wireResponse) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if reply, ok := c.pending[r.RequestID]; ok {
		delete(c.pending, r.RequestID)
		reply <- r
	}
}

// Asked starts answering a request of the CLI, on a goroutine of its own: an answer may take minutes, and several may be open.
func (c *control) Asked(ctx context.Context, id string, answer func(context.Context) (any, error)) {
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
			return // withdrawn: an answer would be to nothing
		}
		// request_id belongs inside response; at the top level it is ignored and the CLI hangs (claude-cli.md §14).
		response := map[string]any{"request_id": id}
		if err != nil {
			response["subtype"], response["error"] = "error", err.Error()
		} else {
			response["subtype"], response["response"] = "success", body
		}
		if err := c.in.Send(map[string]any{"type": "control_response", "response": response}); err != nil {
			c.deaf(err)
		}
	})
}

// Open is how many questions of the CLI are being answered.
func (c *control) Open() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.asked)
}

// Wait returns when no question of the CLI is being answered any more; their contexts must have ended.
func (c *control) Wait() { c.answers.Wait() }

// Withdrawn cancels an open question of the CLI.
func (c *control) Withdrawn(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cancel, ok := c.asked[id]; ok {
		delete(c.asked, id)
		cancel()
	}
}

// Die fails everything that still waits for an answer; none can come once the CLI's output has ended.
func (c *control) Die() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dead = true
	for id, reply := range c.pending {
		delete(c.pending, id)
		close(reply)
	}
}
