package worker

import (
	"context"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
)

// A task that does not fit beside the running one waits for it, and then runs without neighbours.
func TestTasksWaitForMemory(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	looked := make(chan struct{}, 100)
	enough := make(chan struct{})
	f.agent.do = func(context.Context, agent.Spec, agent.Host) (agent.Result, error) {
		<-enough
		return answer("done"), nil
	}
	f.worker(func(c *Config) {
		c.Timing.Beat = time.Hour // it looks, too: once
		c.Memory = func() int64 {
			looked <- struct{}{}
			return 0
		}
	})
	first, second := f.submit(f.task("a", "x")), f.submit(f.task("b", "x"))
	for range 4 { // the heartbeat and each task have asked, and one has asked twice
		<-looked
	}
	close(enough)
	for _, id := range []string{first, second} {
		if e := f.ending(id); e.Kind != tasks.Answered {
			t.Errorf("ending %+v", e)
		}
	}
	if f.agent.peak != 1 {
		t.Errorf("%d runs at once, want 1", f.agent.peak)
	}
}
