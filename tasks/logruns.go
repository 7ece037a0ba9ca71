package tasks

import (
	"context"
	"log/slog"
)

// runKey is the key under which the context of a run has its ID.
type runKey struct{}

func withRun(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, runKey{}, id)
}

// LogRuns adds the key run to what is logged on behalf of a run, unless it is there: packages that know nothing of runs, such as workspace,
// need only log with the context they were given.
func LogRuns(next slog.Handler) slog.Handler { return runMarker{Handler: next} }

type runMarker struct {
	slog.Handler
	told bool // the logger has the key
}

func (h runMarker) Handle(ctx context.Context, r slog.Record) error {
	id, ok := ctx.Value(runKey{}).(string)
	told := h.told
	r.Attrs(func(a slog.Attr) bool {
		told = told || a.Key == "run"
		return !told
	})
	if ok && !told {
		r = r.Clone()
		r.AddAttrs(slog.String("run", id))
	}
	return h.Handler.Handle(ctx, r)
}

func (h runMarker) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		h.told = h.told || a.Key == "run"
	}
	h.Handler = h.Handler.WithAttrs(attrs)
	return h
}

func (h runMarker) WithGroup(name string) slog.Handler {
	h.Handler = h.Handler.WithGroup(name)
	return h
}
