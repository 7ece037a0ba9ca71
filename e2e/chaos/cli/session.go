package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/errand-fleet/errand/e2e/chaos/script"
)

// cli is one session. The goroutine that reads stdin fills its queue; everything else belongs to the main goroutine
// unless noted.
type cli struct {
	out     *output
	said    *transcript
	witness *witness
	model   *model
	failed  bool // the latest result was an error
	results int

	resumed  bool
	stubborn atomic.Bool // TERM is ignored; read by the goroutine that gets signals

	mu       sync.Mutex
	queue    []input
	closed   bool               // no more messages will arrive
	arrived  *sync.Cond         // on mu
	abort    context.CancelFunc // ends the present turn; nil between turns
	stopped  bool               // end_session was requested
	permits  map[string]chan struct{}
	requests int
}

// session runs a session and returns the exit code.
func session(o options) int {
	out := &output{w: os.Stdout, session: o.session}
	said, err := openTranscript(o)
	if errors.Is(err, errNoSession) {
		text := "No conversation found with session ID: " + o.resume
		out.say(object{
			"type": "result", "subtype": "error_during_execution", "is_error": true, "num_turns": 0,
			"errors": []string{text},
		})
		fmt.Fprintln(os.Stderr, text)
		return 1
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	out.session = said.id
	w, err := meet(script.CLI)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	c := &cli{
		out: out, said: said, witness: w, model: newModel(out, said.id), resumed: o.resume != "",
		permits: map[string]chan struct{}{},
	}
	c.arrived = sync.NewCond(&c.mu)
	go c.signals()
	go func() {
		read(c.handle)
		c.mu.Lock()
		c.closed = true
		c.arrived.Broadcast()
		c.mu.Unlock()
	}()
	for {
		batch := c.next()
		if batch == nil {
			break
		}
		c.turn(batch)
	}
	if c.failed {
		return 1
	}
	return 0
}

// signals ends the process like the real CLI, unless it has the order to be stubborn.
func (c *cli) signals() {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM, syscall.SIGHUP)
	for range asked {
		if !c.stubborn.Load() {
			os.Exit(143)
		}
	}
}

// handle processes one line from the host. It runs on the goroutine that reads stdin, also during a turn.
func (c *cli) handle(l input) {
	switch l.Type {
	case "user":
		c.out.lifecycle(l.UUID, "queued")
		c.mu.Lock()
		c.queue = append(c.queue, l)
		c.arrived.Broadcast()
		c.mu.Unlock()
	case "control_request":
		c.obey(l)
	case "control_response":
		c.mu.Lock()
		if answered := c.permits[l.Response.RequestID]; answered != nil {
			delete(c.permits, l.Response.RequestID)
			close(answered)
		}
		c.mu.Unlock()
	}
}

// obey answers a control request.
func (c *cli) obey(l input) {
	reply := object{}
	if l.Request.Subtype == "interrupt" {
		reply["still_queued"] = []string{}
	}
	c.out.say(object{"type": "control_response", "response": object{
		"subtype": "success", "request_id": l.RequestID, "response": reply,
	}})
	switch l.Request.Subtype {
	case "interrupt":
		c.mu.Lock()
		dropped := c.queue
		c.queue = nil
		if c.abort != nil {
			c.abort()
		}
		c.mu.Unlock()
		for _, m := range dropped {
			c.out.lifecycle(m.UUID, "cancelled")
		}
	case "end_session":
		c.mu.Lock()
		c.stopped, c.closed = true, true
		c.arrived.Broadcast()
		if c.abort != nil {
			c.abort()
		}
		c.mu.Unlock()
	}
}

// next waits for messages and returns all that have arrived, which share a turn. It returns nil at the end of the
// session.
func (c *cli) next() []input {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 && c.results > 0 {
		c.out.state("idle")
	}
	for len(c.queue) == 0 && !c.closed {
		c.arrived.Wait()
	}
	if c.stopped {
		return nil
	}
	batch := c.queue
	c.queue = nil
	return batch
}
