package attempt

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// A task that meets a fault of the machine goes to another worker, for some hours.
func TestFaultIsNoAttempt(t *testing.T) {
	t.Parallel()
	fault := fmt.Errorf("clone: %w", &fs.PathError{Op: "open", Path: "x", Err: unix.EIO})
	f := newFleet(t)
	w := f.idle()
	rec := store.Record{Created: time.Now()}
	err := w.blameMachine(t.Context(), rec, fault)
	if later, ok := errors.AsType[*tasks.ErrLater](err); !ok || later.Tell == "" {
		t.Errorf("a task that met a fault: %v", err)
	}
	rec.Created = time.Now().Add(-horizon)
	if err := w.blameMachine(t.Context(), rec, fault); err != nil {
		t.Errorf("a task that has met it for hours: %v", err)
	}
}
