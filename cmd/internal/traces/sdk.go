package traces

import (
	"context"
	"crypto/rand"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/errand-fleet/errand/tasks"
)

// collector keeps ended spans. One goroutine uses it.
type collector struct{ ended []sdk.ReadOnlySpan }

func (c *collector) OnStart(context.Context, sdk.ReadWriteSpan) {}
func (c *collector) OnEnd(s sdk.ReadOnlySpan)                   { c.ended = append(c.ended, s) }
func (c *collector) Shutdown(context.Context) error             { return nil }
func (c *collector) ForceFlush(context.Context) error           { return nil }

// taskKey is the key of the task in the context of its first span.
type taskKey struct{}

// identifier gives the spans of a task the trace ID that follows from its ID, which log lines have, too.
type identifier struct{}

func (identifier) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	id, _ := ctx.Value(taskKey{}).(string)
	t := trace.TraceID(tasks.TraceID(id))
	return t, identifier{}.NewSpanID(ctx, t)
}

func (identifier) NewSpanID(context.Context, trace.TraceID) (id trace.SpanID) {
	_, _ = rand.Read(id[:]) // never fails
	return id
}
