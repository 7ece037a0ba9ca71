package worker

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks/worker/logline"
)

// Everything that a run passes to other parts carries its ID.
func TestRunsContextHasItsID(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	seen := make(chan string, 1)
	f.agent.do = func(ctx context.Context, _ agent.Spec, _ agent.Host) (agent.Result, error) {
		var line bytes.Buffer
		slog.New(logline.Handler(slog.NewTextHandler(&line, nil), false)).WarnContext(ctx, "a")
		seen <- line.String()
		return answer("done"), nil
	}
	f.worker()
	id := f.submit(f.task("a", "go"))
	f.ending(id)
	if got := <-seen; !strings.HasSuffix(got, " run="+id+"\n") {
		t.Errorf("in the context of the run of %s: %s", id, got)
	}
}
