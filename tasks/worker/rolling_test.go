package worker

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
)

// All workers are replaced one after the other while tasks arrive and run. No task is lost or done twice, and an
// interrupted one uses no attempt and continues in its conversation.
func TestRollingDeploy(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	steps, started := make(chan struct{}), make(chan string, 1000) // a run ends with a step, or is stopped
	var mu sync.Mutex
	finished := map[string]int{}
	f.agent.do = func(ctx context.Context, s agent.Spec, _ agent.Host) (agent.Result, error) {
		started <- s.ID
		select {
		case <-steps:
			mu.Lock()
			defer mu.Unlock()
			finished[s.ID]++
			return answer("done"), nil
		case <-ctx.Done():
			r := answer("")
			r.Outcome = agent.Stopped
			return r, nil
		}
	}
	var all []string
	submit := func(n int) {
		for range n {
			all = append(all, f.submit(f.task(fmt.Sprint("thread", len(all)%12), "x")))
		}
	}
	const full = 4 // slots of a worker
	workers := []func(){f.worker(), f.worker()}
	submit(24)
	for range 2 * full {
		<-started
	}
	for i := range 4 { // twice each
		for range 3 {
			steps <- struct{}{}
		}
		replacement := f.worker()
		workers[i%2]() // returns when it has returned its runs
		workers[i%2] = replacement
		submit(7)
	}
	close(steps)
	for _, id := range all {
		if e := f.ending(id); e.Kind != tasks.Answered {
			t.Errorf("ending of %s = %+v", id, e)
		}
	}
	f.stopAll()
	interrupted := 0
	for _, id := range all {
		s, err := f.desk.Status(t.Context(), id)
		if err != nil || s.Attempt != 1 || finished[id] != 1 || f.source.closes[id] != 1 {
			t.Errorf("%s took %d attempts, was finished %d times and closed %d times, %v", id, s.Attempt, finished[id],
				f.source.closes[id], err)
		}
	}
	for _, s := range f.agent.specs() {
		if s.Resume != nil && s.Prompt.Text != "x" {
			interrupted++
		}
	}
	if f.agent.most > 1 || f.agent.swept != 6 {
		t.Errorf("%d runs of one thread at once, want 1; %d workers swept, want 6", f.agent.most, f.agent.swept)
	}
	if runs := len(f.agent.specs()); interrupted == 0 || runs != len(all)+interrupted {
		t.Errorf("%d runs of %d tasks, %d of them went on", runs, len(all), interrupted)
	}
}
