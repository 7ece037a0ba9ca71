package attempt

import (
	"errors"
	"testing"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/worker/hold"
)

func TestReturns(t *testing.T) {
	t.Parallel()
	for want, cause := range map[Return]error{
		ReturnDrain: hold.ErrDrain, ReturnLost: hold.ErrClaimLost, ReturnWait: tasks.Later(time.Second, "busy"),
		ReturnRetry: &retryError{}, ReturnParked: &retryError{Wait: store.Wait{Parked: parkLimit}},
		ReturnError: errors.New("redis is away"),
	} {
		if got := waitAfter(store.Record{}, cause).reason; got != want {
			t.Errorf("%v is %s, want %s", cause, got, want)
		}
	}
}

// A task's wait counts from when it may start, not from when it was submitted.
func TestWaited(t *testing.T) {
	t.Parallel()
	at := func(s int64) time.Time { return time.Unix(1_700_000_000+s, 0) }
	for name, c := range map[string]struct {
		rec  store.Record
		want time.Duration
	}{
		"at once":          {store.Record{Created: at(0), Started: at(3)}, 3 * time.Second},
		"put off":          {store.Record{Created: at(0), At: at(30), Started: at(31)}, time.Second},
		"put off, no more": {store.Record{Created: at(0), At: at(-5), Started: at(2)}, 2 * time.Second},
		"clock went back":  {store.Record{Created: at(5), Started: at(0)}, 0},
	} {
		if got := waited(c.rec); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
