package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/errand-fleet/errand/agent/internal/gateway"
	"github.com/errand-fleet/errand/agent/internal/protocol"
	"github.com/errand-fleet/errand/agent/internal/redact"
	"github.com/errand-fleet/errand/agent/internal/tools"
)

// liveRun is a run whose CLI has been started.
type liveRun struct {
	invocation
	*command
	r       *Runner
	policy  tools.Policy
	in      *protocol.Stdin
	control *protocol.Control
	stream  *protocol.Stream
	stderr  protocol.Tail
	disk    *diskWatch
	tools   *tools.Server // nil without Spec.Tools
	known   callable      // what messages may call by name; set before the first is sent

	instructor *instructor

	answered bool       // the CLI has answered for the first time; belongs to the goroutine of converse
	writing  sync.Mutex // held while a message is written
	over     bool       // no message is written any more; guarded by writing

	idle     chan struct{}  // the session has nothing left to do; capacity 1
	hosted   sync.WaitGroup // calls of Host and Spec.Checkpoint, requests to the CLI, the disk's watch
	quiet    chan struct{}  // closed when both readers are done: every process of the run is dead
	planning atomic.Bool    // the agent must not change anything

	usd      float64   // latest Used event; belongs to the reader of stdout
	usage    Usage     // likewise
	pinged   time.Time // the latest answer to a ping; belongs to watch
	asked    time.Time // the latest work before the CLI was asked for its usage; likewise
	reminded bool      // of the form of its answer; belongs to the goroutine of nextMessage
	reminder int       // number of answers before the reminder

	ctx    context.Context         // ends with the first cause for the run to end
	cancel context.CancelCauseFunc // ends ctx
}

// newLiveRun returns the state of a run that has been started. It reads nothing yet.
func (r *Runner) newLiveRun(in invocation, c *command) *liveRun {
	s, redactor := in.spec, in.redactor
	l := &liveRun{
		invocation: in, command: c, r: r, policy: r.policy(s), in: protocol.NewStdin(c.process.Stdin),
		disk: r.newDiskWatch(s, c.dirs.Root), idle: make(chan struct{}, 1), quiet: make(chan struct{}),
	}
	l.policy.Texts = filepath.Join(c.dirs.Inside().Root, pluginsDir)
	l.instructor = newInstructor(&l.spec)
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	l.control = protocol.NewControl(l.in, l.stdinFailed)
	if len(s.Tools) > 0 {
		l.tools = tools.Serve(l.ctx, s.Tools, r.cfg.Redactor, l.toolFailed) // the agent reads the results
	}
	l.stream = protocol.NewStream(protocol.Config{
		Redactor: redactor, Log: in.log, Control: l.control, Handler: streamHandler{l}, Names: c.gate.Names(),
		Describe: func(tool string, input json.RawMessage) (string, bool) {
			return tools.Describe(redactor, s.Dir, tool, input), tools.Known(tool)
		},
	})
	return l
}

// read starts the goroutines that read the CLI's output.
func (l *liveRun) read() {
	l.gate.OnOverspent(func() { l.cancel(gateway.ErrSpent) })
	stderrRead := make(chan struct{})
	go func() {
		defer close(stderrRead)
		defer l.process.Stderr.Close()
		protocol.ReadText(l.process.Stderr, l.redactor, func(text []byte) {
			for line := range strings.Lines(string(text)) {
				l.stderr.Add([]byte(line))
				l.log.Note(time.Now(), "[stderr] %s", line)
			}
		})
	}()
	go func() {
		defer close(l.quiet)
		l.stream.Read(l.process.Stdout)
		_ = l.process.Stdout.Close()
		l.control.Abort()
		<-stderrRead
	}()
}

func (l *liveRun) removeDirs() { l.r.removeDirs(l.id, l.dirs) }

// saved returns the session without the secrets of the run.
func (l *liveRun) saved() []byte {
	var secrets *redact.Redactor
	if len(l.spec.Secrets) > 0 {
		secrets = redact.Known(slices.Collect(maps.Values(l.spec.Secrets))...)
	}
	data, err := l.dirs.Save(l.session, secrets)
	if err != nil {
		l.note("the session is not saved: %v", err)
	}
	return data
}

// saveCheckpoints hands out the conversation while the run lives. Its cost is the cost before the run: the CLI saves
// the rest at its end, and continues counting from the saved cost when it resumes the conversation.
func (l *liveRun) saveCheckpoints() {
	if l.spec.Checkpoint == nil || l.spec.CheckpointEvery <= 0 {
		return
	}
	tick := time.NewTicker(l.spec.CheckpointEvery)
	defer tick.Stop()
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-tick.C:
		}
		s := Session{ID: l.session, Data: l.saved()}
		if before := l.resume; before != nil {
			s.CostUSD, s.Usage = before.CostUSD, before.Usage
		}
		if s.Data != nil && l.ctx.Err() == nil {
			l.spec.Checkpoint(l.ctx, s)
		}
	}
}

// streamHandler receives the reports of a run's Stream.
type streamHandler struct{ *liveRun }

func (h streamHandler) Event(e protocol.Event) {
	h.host.Event(Event{
		Time: e.Time, Kind: e.Kind, Text: e.Text, Tool: e.Tool, ToolID: e.ToolID, Input: e.Input, Error: e.Error,
		Parent: e.Parent, Agent: e.Agent,
	})
}

func (h streamHandler) Idle() {
	select {
	case h.idle <- struct{}{}:
	default:
	}
}

// Retry reports why a request to the model is repeated, if known. It ends a run whose CLI would retry in vain for
// three minutes (CLI 2.1.329).
func (h streamHandler) Retry(reason string, attempt, limit int) {
	text := cmp.Or(h.gate.Trouble(), fmt.Sprintf("The model did not answer (%s).", cmp.Or(reason, "-")))
	text = h.redactor.String(fmt.Sprintf("%s Trying again (%d of %d).", text, attempt, limit))
	class := assistantErrors[reason]
	if api := h.gate.Seen(); api != nil { // the fleet starts fewer runs because of it, so the CLI's word is not enough
		class = apiClass(api)
	}
	h.log.Note(time.Now(), "! %s", text)
	h.host.Event(Event{Time: time.Now(), Kind: Notice, Text: text, Class: class})
	if hopeless(reason) {
		h.cancel(hopelessError{reason})
	}
}

// Used reports the cost of the run if it has changed: as its gateway counted it, or else as the CLI reports it.
func (h streamHandler) Used(usd float64, models map[string]protocol.ModelUsage) {
	usd, usage := h.resume.share(plausible(usd, models))
	if api := h.gate.Seen(); api != nil {
		usd, usage = api.CostUSD, api.Usage
	}
	if usd == h.usd && usage == h.usage {
		return
	}
	h.usd, h.usage = usd, usage
	h.host.Event(Event{Time: time.Now(), Kind: Used, CostUSD: usd, Usage: &usage})
}

// Ask answers a control request of the CLI.
func (h streamHandler) Ask(id string, q *protocol.Request) {
	if in, err := q.Hook(); q.Subtype == "hook_callback" && err == nil && in.Event == protocol.SkillShell {
		h.announce(in)
	}
	h.control.Answer(h.ctx, id, func(ctx context.Context) (any, error) {
		defer h.stream.Touch()
		return h.answer(ctx, q)
	})
}

// stdinPatience is the time in which a CLI whose input cannot be written is usually found to have exited.
const stdinPatience = 2 * time.Second

// stdinFailed stops a CLI that does not read its input, unless it turns out to have exited.
func (l *liveRun) stdinFailed(err error) {
	time.AfterFunc(stdinPatience, func() { l.cancel(fmt.Errorf("%w: %w", errStdin, err)) })
}

// refused reports whether the CLI answered a control request with an error.
func refused(err error) bool {
	_, ok := errors.AsType[*protocol.Refusal](err)
	return ok
}
