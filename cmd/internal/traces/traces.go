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
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

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
	client sdk.SpanExporter
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

// New returns an Exporter, or an error if its endpoint is invalid. It connects when there is something to export.
func New(cfg Config) (*Exporter, error) {
	e := &Exporter{cfg: cfg, queue: make(chan ended, maxQueued), closing: make(chan struct{})}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	var err error
	e.client, err = otlptracehttp.New(e.ctx, otlptracehttp.WithEndpointURL(cfg.URL),
		otlptracehttp.WithHeaders(cfg.Headers))
	if err != nil {
		return nil, fmt.Errorf("export traces: %w", err)
	}
	e.over.Go(e.work)
	return e, nil
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
func (e *Exporter) Close() error {
	close(e.closing)
	stop := time.AfterFunc(closeLimit, e.cancel)
	e.over.Wait()
	stop.Stop()
	e.cancel()
	return e.client.Shutdown(context.Background())
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
	spans := &collector{}
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(spans), sdk.WithIDGenerator(identifier{}),
		sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", "errand"),
			attribute.String("service.version", e.cfg.Version))))
	build(context.WithValue(ctx, taskKey{}, one.task.ID), provider.Tracer("errand"), one, record, events)
	if len(spans.ended) == 0 { // OTEL_TRACES_SAMPLER left it out
		return nil
	}
	return e.client.ExportSpans(ctx, spans.ended)
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

// build makes the spans of a task. They continue the trace of the request that made the task, if it had one.
func build(ctx context.Context, tracer trace.Tracer, one ended, record store.Record, events []agent.Event) {
	t, at := one.task, tasks.Born(one.task.ID)
	ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": t.Trace})
	ctx, root := tracer.Start(ctx, "task "+t.Kind, trace.WithTimestamp(at), trace.WithAttributes(
		attribute.String("errand.task", t.ID), attribute.String("errand.thread", t.Thread),
		attribute.String("errand.source", t.Source), attribute.String("errand.class", t.Class),
		attribute.String("errand.repo", t.Repo), attribute.String("errand.outcome", string(one.ending.Kind)),
		attribute.Float64("errand.cost_usd", record.Cost),
	))
	if one.ending.Kind == tasks.Failed {
		root.SetStatus(codes.Error, string(one.ending.Kind))
	}
	span(ctx, tracer, "submit", at, record.Created)
	from := record.Created
	for i, r := range record.Runs {
		until := r.Ended
		if until.IsZero() {
			until = record.Ended
		}
		span(ctx, tracer, "wait", from, r.Started)
		runCtx, s := tracer.Start(ctx, "run", trace.WithTimestamp(r.Started), trace.WithAttributes(
			attribute.Int("errand.attempt", i+1), attribute.String("errand.worker", r.Worker),
		))
		r.Ended = until
		calls(runCtx, tracer, r, events)
		s.End(trace.WithTimestamp(until))
		from = until
	}
	span(ctx, tracer, "post", record.Ended, one.posted)
	root.End(trace.WithTimestamp(one.posted))
}

// span makes a span without children, unless it would end before it begins: the clocks of machines differ.
func span(ctx context.Context, tracer trace.Tracer, name string, from, until time.Time) {
	if from.IsZero() || until.Before(from) {
		return
	}
	_, s := tracer.Start(ctx, name, trace.WithTimestamp(from))
	s.End(trace.WithTimestamp(until))
}

// calls makes the spans of the tool calls of a run, below the span of ctx. Those of a sub-agent are below the call that
// started it.
func calls(ctx context.Context, tracer trace.Tracer, r store.Run, events []agent.Event) {
	type call struct {
		ctx  context.Context //nolint:containedctx // of its span
		span trace.Span
	}
	open := map[string]call{}
	for _, e := range events {
		if e.Time.Before(r.Started) || e.Time.After(r.Ended) {
			continue
		}
		switch e.Kind {
		case agent.Notice:
			// Without its text, which can contain a name or the output of a command.
			trace.SpanFromContext(ctx).AddEvent("notice", trace.WithTimestamp(e.Time), trace.WithAttributes(
				attribute.String("errand.notice", cmp.Or(e.Tool, string(e.Class))),
			))
		case agent.ToolUse:
			parent := ctx
			if above, known := open[e.Parent]; known {
				parent = above.ctx
			}
			c, s := tracer.Start(parent, "tool "+e.Tool, trace.WithTimestamp(e.Time))
			open[e.ToolID] = call{c, s}
		case agent.ToolResult:
			c, known := open[e.ToolID]
			if !known {
				continue
			}
			if e.Error {
				c.span.SetStatus(codes.Error, "the tool failed")
			}
			c.span.End(trace.WithTimestamp(e.Time))
		}
	}
	for _, c := range open {
		c.span.End(trace.WithTimestamp(r.Ended)) // has no effect on those that have ended
	}
}
