package publish

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"
	"testing/synctest"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/worker/hold"
	"github.com/errand-fleet/errand/workspace"
)

// A repository that takes too long leaves time for the others, up to a limit for all of them, which keeps the end of
// the run before asynq's deadline. A drain is waited for once, and not in each repository.
func TestTimeOfPublishing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		run := &hold.Hold{Detached: t.Context(), Ctx: t.Context()}
		work := Work{
			Task:   tasks.Task{Options: tasks.Options{Limit: time.Hour}},
			Result: agent.Result{Duration: time.Hour},
		}
		most := work.checksLeft() + 2*publishFor
		if most+proposeFirst > 9*time.Minute {
			t.Errorf("publishing takes up to %s", most)
		}
		began := time.Now()
		all, cancel := during(run, most)
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
		for cause, want := range map[error]time.Duration{hold.ErrDrain: publishDraining, hold.ErrClaimLost: 0} {
			run, began := &hold.Hold{Detached: t.Context()}, time.Now()
			ctx, stop := context.WithCancelCause(t.Context())
			run.Ctx = ctx
			all, cancel := during(run, time.Hour)
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

// Local failures are only logged: no path of the worker's machine is posted.
func TestWhyNothingWasPublished(t *testing.T) {
	t.Parallel()
	const dir = "/var/lib/errand/clones/1"
	for want, err := range map[string]error{
		"the worker failed to do it; its log has details": fmt.Errorf("publish acme/api: %w",
			&fs.PathError{Op: "open", Path: dir + "/x", Err: fs.ErrPermission}),
		"publish acme/api: the remote refused the push: no tests": fmt.Errorf("publish acme/api: %w: no tests",
			workspace.ErrRejected),
		"the work is not fit to be published: the clone/a": fmt.Errorf("%w: %s/a", workspace.ErrUnfit, dir),
		"it took too long": errPublishTime,
	} {
		if got := unpublished(err, dir); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}
