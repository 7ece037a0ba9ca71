package worker

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/errand-fleet/errand/tasks"
)

// A repository that takes too long leaves time for the others, up to a limit for all of them, which keeps the end of
// the run before asynq's deadline. A drain is waited for once, and not in each repository.
func TestTimeOfPublishing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		run := &run{detached: t.Context(), ctx: t.Context()}
		limited := tasks.Task{Options: tasks.Options{Limit: time.Hour}}
		run.result.Duration = time.Hour
		most := checksLeft(run, limited) + 2*publishFor
		if most+proposeFirst+2*learnFor > 9*time.Minute {
			t.Errorf("publishing takes up to %s", most)
		}
		began := time.Now()
		all, cancel := publishing(run, most)
		defer cancel()
		for i := range 5 {
			one, _, stop := patiently(all)
			<-one.Done()
			if took := time.Since(began); !errors.Is(context.Cause(one), errPublishTime) ||
				took != min(time.Duration(i+1)*publishFor, most) {
				t.Errorf("repository %d ended after %s: %v", i, took, context.Cause(one))
			}
			stop()
		}
		if time.Since(began) != most || !errors.Is(context.Cause(all), errPublishTime) {
			t.Errorf("all ended after %s: %v", time.Since(began), context.Cause(all))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		for cause, want := range map[error]time.Duration{errDrain: publishDraining, errClaimLost: 0} {
			run, began := &run{detached: t.Context()}, time.Now()
			ctx, stop := context.WithCancelCause(t.Context())
			run.ctx = ctx
			all, cancel := publishing(run, time.Hour)
			stop(cause)
			for range 3 {
				one, _, end := patiently(all)
				<-one.Done()
				end()
			}
			if took := time.Since(began); took != want || !errors.Is(context.Cause(all), cause) {
				t.Errorf("%v: ended after %s, %v", cause, took, context.Cause(all))
			}
			cancel()
		}
	})
}
