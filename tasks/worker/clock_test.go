package worker

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/internal/redisclock"
	"github.com/errand-fleet/errand/tasks"
)

// Redis' clock jumps by an hour and later back while tasks run and wait, while a message is to be posted again, and
// after a worker has died. Each task is answered once, without a delay.
func TestRedisClockJumps(t *testing.T) {
	t.Parallel()
	for _, jump := range []time.Duration{time.Hour, -time.Hour} {
		t.Run(jump.String(), func(t *testing.T) {
			t.Parallel()
			url, clock := redisclock.ForTest(t)
			f := newFleetOn(t, url)
			steps, started := make(chan struct{}), make(chan string, 100)
			f.agent.do = func(ctx context.Context, s agent.Spec, _ agent.Host) (agent.Result, error) {
				started <- s.ID
				select {
				case <-steps:
					return answer("done"), nil
				case <-ctx.Done():
					return agent.Result{Outcome: agent.Stopped}, nil
				}
			}
			f.source.fail = func(attempt int) error {
				if attempt == 1 {
					return errors.New("away")
				}
				return nil
			}
			dead := f.submit(f.task("dead", "x"))
			if _, err := f.store.Claim(t.Context(), dead, 0, "dead"); err != nil {
				t.Fatal(err)
			}
			all := []string{dead}
			f.jump(clock, jump)
			f.worker()
			f.worker()
			for thread := range 4 {
				for range 2 {
					all = append(all, f.submit(f.task(fmt.Sprint(thread), "x")))
				}
			}
			for range 4 { // the dead worker's task waits until it is alone
				select {
				case <-started:
				case <-time.After(await.Bound):
					t.Fatal("a task does not start after the jump")
				}
			}
			f.jump(clock, 0)
			all = append(all, f.submit(f.task("later", "x")))
			close(steps)
			for _, id := range all {
				if e := f.ending(id); e.Kind != tasks.Answered {
					t.Errorf("ending of %s = %+v", id, e)
				}
			}
			f.stopAll()
			for _, id := range all {
				if n := f.source.closes[id]; n != 2 {
					t.Errorf("%s was posted %d times, want a failure and a success", id, n)
				}
			}
			if runs := len(f.agent.specs()); f.agent.most > 1 || runs != len(all) {
				t.Errorf("%d runs of %d tasks, %d of one thread at once", runs, len(all), f.agent.most)
			}
		})
	}
}

func (f *fleet) jump(clock *redisclock.Clock, ahead time.Duration) {
	f.Helper()
	if err := clock.Set(ahead); err != nil {
		f.Fatal(err)
	}
}
