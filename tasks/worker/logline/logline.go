// Package logline marks lines of a worker's log with the run that they are about. It knows nothing of what a run is.
// All of it is safe for concurrent use.
package logline

import (
	"cmp"
	"context"
	"encoding/hex"
	"log/slog"

	"github.com/errand-fleet/errand/tasks"
)

// runKey is the context key of a run's ID.
type runKey struct{}

// WithRun returns a context for work on the task with an ID, which [Handler] adds to what is logged with it.
func WithRun(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, runKey{}, id)
}

// TraceKey is the key of the ID of a task's trace in log records.
const TraceKey = "trace_id"

// Handler returns a handler that adds the key run to records that are logged with a run's context, unless they have
// it, and the ID of its trace if traced is set. Packages that know nothing of runs, such as workspace, only have to log
// with the context that they were given.
func Handler(next slog.Handler, traced bool) slog.Handler {
	return runMarker{Handler: next, traced: traced}
}

type runMarker struct {
	slog.Handler
	traced bool
	run    string // that the logger has already, or ""
}

func (h runMarker) Handle(ctx context.Context, r slog.Record) error {
	run := h.run
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "run" {
			run = a.Value.String()
		}
		return run == ""
	})
	id, ok := ctx.Value(runKey{}).(string)
	if add := ok && run == ""; add || h.traced && run+id != "" {
		r = r.Clone()
		if add {
			r.AddAttrs(slog.String("run", id))
		}
		if h.traced {
			trace := tasks.TraceID(cmp.Or(run, id))
			r.AddAttrs(slog.String(TraceKey, hex.EncodeToString(trace[:])))
		}
	}
	return h.Handler.Handle(ctx, r)
}

func (h runMarker) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		if a.Key == "run" {
			h.run = a.Value.String()
		}
	}
	h.Handler = h.Handler.WithAttrs(attrs)
	return h
}

func (h runMarker) WithGroup(name string) slog.Handler {
	h.Handler = h.Handler.WithGroup(name)
	return h
}

// Warn logs a failure that does not stop anything. It does nothing if err is nil.
func Warn(log *slog.Logger, err error, msg string, args ...any) {
	if err != nil {
		log.Warn(msg, append(args, "err", err)...) //nolint:sloglint // each caller passes a constant
	}
}
