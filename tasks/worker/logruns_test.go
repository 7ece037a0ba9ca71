package worker

import (
	"bytes"
	"context"
	"log/slog"
	"testing"

	"github.com/errand-fleet/errand/agent"
)

// Each log line of a run has its ID, once.
func TestLogRuns(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	plain := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
			return slog.Attr{}
		}
		return a
	}
	log := slog.New(LogRuns(slog.NewTextHandler(&b, &slog.HandlerOptions{ReplaceAttr: plain})))
	run := withRun(t.Context(), "1-x")
	log.WarnContext(run, "a", "dir", "d")
	log.WarnContext(t.Context(), "b")
	log.WarnContext(run, "c", "run", "2-y")
	log.With("run", "3-z").WarnContext(run, "d")
	log.With("source", "slack").WarnContext(run, "e")
	if want := "msg=a dir=d run=1-x\nmsg=b\nmsg=c run=2-y\nmsg=d run=3-z\nmsg=e source=slack run=1-x\n"; b.String() != want {
		t.Errorf("got %s want %s", b.String(), want)
	}
}

// Everything that a run passes to other parts carries its ID.
func TestRunsContextHasItsID(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	seen := make(chan any, 1)
	f.agent.do = func(ctx context.Context, _ agent.Spec, _ agent.Host) (agent.Result, error) {
		seen <- ctx.Value(runKey{})
		return answer("done"), nil
	}
	f.worker()
	id := f.submit(f.task("a", "go"))
	f.ending(id)
	if got := <-seen; got != id {
		t.Errorf("the run of %s has the context of %v", id, got)
	}
}
