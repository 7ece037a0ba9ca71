package worker

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
)

// An ending is noted after its final message was posted, and again if that failed.
func TestEndingIsNoted(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	noted := make(chan string, 10)
	var calls atomic.Int32
	f.worker(func(c *Config) {
		c.Ended = func(_ context.Context, task tasks.Task, at time.Time) error {
			f.ending(task.ID) // its message is posted
			if calls.Add(1) == 1 {
				return errors.New("Redis is gone")
			}
			noted <- fmt.Sprintf("%s %t", task.ID, at.IsZero())
			return nil
		}
	})
	id := f.submit(f.task("a", "x"))
	if got := <-noted; got != id+" false" {
		t.Error(got)
	}
	if n := calls.Load(); n != 2 {
		t.Errorf("%d calls", n)
	}
}

// What a run absorbed ends with it, and its ending is noted, too.
func TestEndingsOfAbsorbedTasksAreNoted(t *testing.T) {
	t.Parallel()
	f, s := talking(t, nil)
	runs := f.converses()
	noted := make(chan string, 10)
	f.talker(s, func(c *Config) {
		c.Ended = func(_ context.Context, task tasks.Task, at time.Time) error {
			noted <- fmt.Sprintf("%s %t", task.Prompt, at.IsZero())
			return nil
		}
	})
	f.submit(f.task("a", "paint it"))
	run := <-runs
	f.submit(f.task("a", "blue"))
	run.take(run.next())
	run.end <- answer("It is blue.")
	f.equal("noted", []string{<-noted, <-noted}, []string{"paint it false", "blue false"})
}

// While a source lets a final message wait, another thread's task runs in the slot and at the place under the cap. The
// thread's own next task starts after the message.
func TestPostingHoldsNoSlot(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.policy.Limits.User = 1
	opens := make(chan struct{})
	f.source.open = opens
	ran := make(chan string, 10)
	f.agent.do = func(_ context.Context, s agent.Spec, _ agent.Host) (agent.Result, error) {
		ran <- s.ID
		return answer("x"), nil
	}
	f.worker(func(c *Config) { c.Slots = 2 }) // one for reviews
	review := func(thread string) string {
		task := f.task(thread, "x")
		task.Class = tasks.Review
		return f.submit(task)
	}
	first := review("a")
	if id := <-ran; id != first {
		t.Fatalf("%s ran", id)
	}
	next, other := review("a"), review("b")
	if id := <-ran; id != other {
		t.Errorf("%s ran, want that of another thread", id)
	}
	close(opens)
	if id := <-ran; id != next {
		t.Errorf("%s ran, want the thread's next one", id)
	}
	for _, id := range []string{first, next, other} {
		if e := f.ending(id); e.Kind != tasks.Answered {
			t.Errorf("%s: %+v", id, e)
		}
	}
}
