package protocol

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json"
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
	return &Control{
		in: in, stdinFailed: stdinFailed, pending: map[string]chan<- response{}, asked: map[string]context.CancelFunc{},
	}
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

// ignoredSystemLines are subtypes that neither the run nor a reader of it needs.
var ignoredSystemLines = map[string]bool{
	"status": true, "thinking_tokens": true, "hook_started": true, "hook_response": true, "hook_progress": true,
	"notification": true, "informational": true, "commands_changed": true, "ui_invalidate": true, "task_updated": true,
	"model_refusal_no_fallback": true, "local_command_output": true, "files_persisted": true, "post_turn_summary": true,
	"turn_preempted": true,
}

// system handles the lines that the CLI writes about itself.
func (s *Stream) system(l *outputLine) {
	switch l.Subtype {
	case "init":
		s.init(l)
	case "session_state_changed":
		s.mu.Lock()
		s.clock.Turn = l.State != "idle"
		s.rests = s.rests && !s.clock.Turn
		s.mu.Unlock()
		s.checkIdle()
	case "background_tasks_changed":
		s.mu.Lock()
		// The agent learns the result of the task in a new turn, so this is not the end, and the end of the previous
		// turn is past.
		if s.facts.Background = int(l.Tasks); l.Tasks == 0 && !s.clock.Ended.IsZero() {
			s.clock.Ended = s.at
		}
		s.mu.Unlock()
	case "task_started":
		if l.Background {
			s.notice("Started in the background: " + cmp.Or(s.Redactor.Head([]byte(l.Description), maxPreview), "-"))
		}
	case "task_progress":
		s.Log.Note(s.at, "[%s] %s", cmp.Or(l.Agent, "sub-agent"), l.Description)
	case "task_notification":
		summary := s.Redactor.Head([]byte(l.Summary), maxPreview)
		s.Log.Note(s.at, "task %s: %s", cmp.Or(l.Status, "-"), summary)
	case "api_retry":
		s.Handler.Retry(l.Error, int(l.Attempt), int(l.MaxRetries))
	case "permission_denied":
		s.notice(l.Tool + " was refused.")
	case "model_fallback":
		s.notice("The model is overloaded; another model continues.")
	case "compact_boundary":
		s.notice("The conversation was compacted.")
	default:
		if !ignoredSystemLines[l.Subtype] {
			s.unknown("system/" + l.Subtype)
		}
	}
}

// init handles the line that begins every turn.
func (s *Stream) init(l *outputLine) {
	s.mu.Lock()
	first := s.facts.Session == ""
	s.facts.Session = l.SessionID
	s.facts.Model = cmp.Or(s.facts.Model, l.Model)
	s.clock.Turn, s.facts.Began, s.rests = true, true, false
	s.mu.Unlock()
	if first {
		s.Log.Note(s.at, "started: model %s, CLI %s, session %s", l.Model, l.CLIVersion, l.SessionID)
		s.event(Event{Kind: Started, Text: l.Model})
	}
	for _, m := range l.Servers { // each turn lists all of them
		if (m.Status == "failed" || m.Status == "needs-auth") && !slices.Contains(s.missing, m.Name) {
			s.missing = append(s.missing, m.Name)
			s.notice(fmt.Sprintf("The MCP server %s is not available (%s); the agent works without its tools.",
				m.Name, m.Status))
		}
	}
}

// trackMessage handles a line about a message that the CLI was given. Each message is queued, started, and then
// completed or cancelled, also when the CLI takes several together (observed).
func (s *Stream) trackMessage(l *outputLine) {
	s.mu.Lock()
	s.facts.Tracked = true
	s.mu.Unlock()
	switch l.State {
	case "started":
		s.event(Event{Kind: Taken, Text: l.Command})
	case "completed", "cancelled":
		s.mu.Lock()
		delete(s.sent, l.Command)
		s.mu.Unlock()
		s.checkIdle()
	}
}

// checkIdle tells the handler if the agent has nothing left to do: the session is idle, no task runs in the background,
// and no message is on its way in. A result alone is only the end of a turn. Several lines show the same idle state,
// those of the completed message and of the idle session, and it is reported only once: a second report could pass
// for the next idle state.
func (s *Stream) checkIdle() {
	s.mu.Lock()
	taken := len(s.sent) == 0 || !s.facts.Tracked
	idle := !s.clock.Turn && taken && s.facts.Background == 0 && s.facts.Results > 0
	news := idle && !s.rests
	s.rests = idle
	s.mu.Unlock()
	if news {
		s.Handler.Idle()
	}
}

// usageAnswer handles the answer to get_usage. Answers to other requests have no session.
func (s *Stream) usageAnswer(answer jsontext.Value) {
	var u struct {
		Session struct {
			CostUSD float64               `json:"total_cost_usd"`
			Models  map[string]ModelUsage `json:"model_usage"`
		} `json:"session"`
	}
	if json.Unmarshal(answer, &u, lenient) == nil {
		s.reportUsage(u.Session.CostUSD, u.Session.Models)
	}
}

func (s *Stream) reportUsage(usd float64, models map[string]ModelUsage) {
	if len(models) > 0 {
		s.Handler.Used(usd, models)
	}
}
