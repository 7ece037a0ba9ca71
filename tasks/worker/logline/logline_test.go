package logline

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/tasks"
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
	log := slog.New(Handler(slog.NewTextHandler(&b, &slog.HandlerOptions{ReplaceAttr: plain}), false))
	run := WithRun(t.Context(), "1-x")
	log.WarnContext(run, "a", "dir", "d")
	log.WarnContext(t.Context(), "b")
	log.WarnContext(run, "c", "run", "2-y")
	log.With("run", "3-z").WarnContext(run, "d")
	log.With("source", "slack").WarnContext(run, "e")
	if want := "msg=a dir=d run=1-x\nmsg=b\nmsg=c run=2-y\nmsg=d run=3-z\nmsg=e source=slack run=1-x\n"; b.String() != want {
		t.Errorf("got %s want %s", b.String(), want)
	}
}

// With traces, a log line also has the ID of the trace.
func TestLogTraces(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	log := slog.New(Handler(slog.NewTextHandler(&b, nil), true))
	trace := fmt.Sprintf(" trace_id=%x\n", tasks.TraceID("1-x"))
	for name, write := range map[string]func(){
		"context": func() { log.WarnContext(WithRun(t.Context(), "1-x"), "a") },
		"record":  func() { log.Warn("a", "run", "1-x") },
		"logger":  func() { log.With("run", "1-x").Warn("a") },
	} {
		b.Reset()
		if write(); !strings.HasSuffix(b.String(), " run=1-x"+trace) {
			t.Errorf("%s: %s", name, &b)
		}
	}
	b.Reset()
	if log.Warn("a"); strings.Contains(b.String(), "trace") {
		t.Errorf("without a run: %s", &b)
	}
}
