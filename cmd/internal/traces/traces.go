// Package traces exports one trace for each task over OTLP: from the event to the final message, across front door,
// queue, workers, runs and tool calls.
//
// A trace is made when the task's final message was posted, from what the store has noted meanwhile, so traces cost a
// front door and a running task nothing. They contain IDs and names of tools, but no text: no prompts, notices or
// errors, nor what tools were called with. All functions may be called from any goroutine.
package traces

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/worker"
)

const (
	maxQueued   = 1000             // tasks whose traces wait for their export; more are dropped
	exportLimit = 30 * time.Second // for one trace
	closeLimit  = 5 * time.Second  // for those that wait at the end
	page        = 500              // events that are read at once
)

// Config is what an Exporter needs.
type Config struct {
	URL     string            // where an OTLP receiver over HTTP takes traces
	Headers map[string]string // of requests to it
	Version string
	Store   *store.Store
	Log     *slog.Logger
}

// Exporter exports traces.
type Exporter struct {
	cfg    Config
	queue  chan ended
	ctx    context.Context // ends with Close
	cancel context.CancelFunc

	closing chan struct{}
	over    sync.WaitGroup
}

// ended is a task whose final message was posted.
type ended struct {
	task   tasks.Task
	ending tasks.Ending
	posted time.Time
}

// New returns an Exporter. It connects when there is something to export.
func New(cfg Config) *Exporter {
	e := &Exporter{cfg: cfg, queue: make(chan ended, maxQueued), closing: make(chan struct{})}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.over.Go(e.work)
	return e
}

// work exports until Close, and then what is left.
func (e *Exporter) work() {
	for {
		select {
		case one := <-e.queue:
			e.export(one)
		case <-e.closing:
			for len(e.queue) > 0 { // nothing else receives
				e.export(<-e.queue)
			}
			return
		}
	}
}

// Close exports what waits, for some seconds at most. Call it once.
func (e *Exporter) Close() {
	close(e.closing)
	stop := time.AfterFunc(closeLimit, e.cancel)
	e.over.Wait()
	stop.Stop()
	e.cancel()
}

// Meter returns a meter that also exports the traces of ended tasks.
func (e *Exporter) Meter(next worker.Meter) worker.Meter { return meter{next, e} }

type meter struct {
	worker.Meter

	exporter *Exporter
}

func (m meter) Ended(t tasks.Task, e tasks.Ending, lag time.Duration) {
	m.Meter.Ended(t, e, lag)
	select {
	case m.exporter.queue <- ended{t, e, time.Now()}:
	default:
		m.exporter.cfg.Log.Warn("drop trace: too many wait for their export", "run", t.ID)
	}
}

// export sends the trace of a task.
func (e *Exporter) export(one ended) {
	if err := e.send(one); err != nil {
		e.cfg.Log.Warn("export trace", "run", one.task.ID, "err", err)
	}
}

// send reads what happened to a task and sends its trace.
func (e *Exporter) send(one ended) error {
	ctx, cancel := context.WithTimeout(e.ctx, exportLimit)
	defer cancel()
	record, err := e.cfg.Store.Get(ctx, one.task.ID)
	if err != nil {
		return err
	}
	events, err := e.events(ctx, one.task.ID)
	if err != nil {
		return err
	}
	spans := build(one, record, events)
	if len(spans) == 0 {
		return nil
	}
	return e.post(ctx, spans)
}

func (e *Exporter) events(ctx context.Context, id string) (all []agent.Event, err error) {
	for before, more := "", true; more; {
		var list []store.Event
		if list, more, err = e.cfg.Store.Events.ReadBefore(ctx, id, before, page); err != nil || len(list) == 0 {
			return all, err
		}
		before = list[0].ID
		part := make([]agent.Event, 0, len(list)+len(all))
		for _, one := range list {
			var event agent.Event
			if json.Unmarshal(one.Data, &event) == nil { // not the mark of the end
				part = append(part, event)
			}
		}
		all = append(part, all...)
	}
	return all, nil
}

// traceparent is the form of the W3C's header: version, trace, span and flags.
var traceparent = regexp.MustCompile(`^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]([0-9a-f])`)

// trace is the spans of a task.
type trace struct {
	id    string
	spans []*span
}

// start adds a span below another one.
func (t *trace) start(parent, name string, from, until time.Time, about ...object) *span {
	id := make([]byte, 8)
	_, _ = rand.Read(id) // never fails
	s := &span{
		TraceID: t.id, ID: hex.EncodeToString(id), Parent: parent, Name: name, Kind: 1, // internal
		Start: from.UnixNano(), End: until.UnixNano(), Attributes: about,
	}
	t.spans = append(t.spans, s)
	return s
}

// build makes the spans of a task, the one of the whole task first. They continue the trace of the request that made
// the task, if it had one. There are none if the requester does not record that trace.
func build(one ended, record store.Record, events []agent.Event) []*span {
	task, own, parent := one.task, tasks.TraceID(one.task.ID), ""
	t := &trace{id: hex.EncodeToString(own[:])}
	if m := traceparent.FindStringSubmatch(task.Trace); m != nil && strings.Trim(m[1], "0") != "" &&
		strings.Trim(m[2], "0") != "" {
		if t.id, parent = m[1], m[2]; !strings.Contains("13579bdf", m[3]) { // bit 0: sampled
			return nil
		}
	}
	at := tasks.Born(task.ID)
	root := t.start(parent, "task "+task.Kind, at, one.posted,
		attribute("errand.task", task.ID), attribute("errand.thread", task.Thread),
		attribute("errand.source", task.Source), attribute("errand.class", task.Class),
		attribute("errand.repo", task.Repo), attribute("errand.outcome", string(one.ending.Kind)),
		attribute("errand.cost_usd", record.Cost))
	if one.ending.Kind == tasks.Failed {
		root.Status = failed(string(one.ending.Kind))
	}
	t.part(root, "submit", at, record.Created)
	from := record.Created
	for i, r := range record.Runs {
		if r.Ended.IsZero() {
			r.Ended = record.Ended
		}
		if r.Ended.Before(r.Started) { // of a retry that has not ended
			r.Ended = one.posted
		}
		if r.Ended.Before(r.Started) {
			break
		}
		t.part(root, "wait", from, r.Started)
		s := t.start(root.ID, "run", r.Started, r.Ended,
			attribute("errand.attempt", i+1), attribute("errand.worker", r.Worker))
		t.calls(s, r, events)
		from = r.Ended
	}
	t.part(root, "post", record.Ended, one.posted)
	return t.spans
}

// part adds a span without children, unless it would end before it begins: the clocks of machines differ.
func (t *trace) part(root *span, name string, from, until time.Time) {
	if !from.IsZero() && !until.Before(from) {
		t.start(root.ID, name, from, until)
	}
}

// calls adds the spans of the tool calls of a run. Those of a sub-agent are below the call that started it.
func (t *trace) calls(run *span, r store.Run, events []agent.Event) {
	open := map[string]*span{}
	for _, e := range events {
		if e.Time.Before(r.Started) || e.Time.After(r.Ended) {
			continue
		}
		switch e.Kind {
		case agent.Notice:
			// Without its text, which can contain a name or the output of a command.
			run.Events = append(run.Events, object{
				"timeUnixNano": strconv.FormatInt(e.Time.UnixNano(), 10), "name": "notice",
				"attributes": []object{attribute("errand.notice", string(e.Class))},
			})
		case agent.ToolUse:
			parent := cmp.Or(open[e.Parent], run)
			open[e.ToolID] = t.start(parent.ID, "tool "+e.Tool, e.Time, r.Ended)
		case agent.ToolResult:
			if call := open[e.ToolID]; call != nil {
				call.End = e.Time.UnixNano()
				if e.Error {
					call.Status = failed("the tool failed")
				}
			}
		}
	}
}
