package worker

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/hibiken/asynq"

	"github.com/errand-fleet/errand/tasks"
)

// A repository whose tasks fill the queue delays those of others by its share only.
func TestNoisyRepository(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	started, finish := f.running()
	submit := func(repo string) string {
		id := f.submit(f.task(fmt.Sprint(repo, f.n), "x"))
		f.put("errand:task:"+id, "scopes", "repo:acme/"+repo) // without a clone
		return id
	}
	const slots, noisy, others = 2, 100, 9
	for range noisy {
		submit("noisy")
	}
	for range 2 { // each with this number of slots
		f.worker(func(c *Config) { c.Slots = slots })
	}
	for range 2 * slots {
		f.next(started)
	}
	var quiet []string
	for i := range others {
		quiet = append(quiet, submit(fmt.Sprint("quiet", i)))
	}
	f.isNext(quiet[0])
	var order []string
	for range 2 * others {
		finish <- struct{}{}
		order = append(order, f.next(started))
	}
	for _, id := range quiet {
		if !slices.Contains(order, id) {
			t.Errorf("%s is not among the next %d", id, len(order))
		}
	}
}

// A long walk through tasks that wait delays the order of shares no further than the next pass.
func TestSharesBesideABacklog(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.backlog(5000)
	var ids []string
	for _, repo := range []string{"noisy", "noisy", "noisy", "quiet"} {
		id := f.submit(f.task(fmt.Sprint(repo, f.n), "x"))
		f.put("errand:task:"+id, "scopes", "repo:acme/"+repo)
		ids = append(ids, id)
	}
	f.idle().recovery.Reconcile(t.Context())
	if next := f.first(tasks.Interactive); !slices.Equal(next, []string{ids[0], ids[3]}) {
		t.Errorf("%q of %q come first", next, ids)
	}
}

// isNext waits until a task's delivery is the next of its class.
func (f *fleet) isNext(id string) {
	f.Helper()
	for f.Context().Err() == nil {
		if next := f.first(tasks.Interactive); len(next) > 0 && next[0] == id {
			return
		}
	}
}

// first returns the deliveries of a class that come first, in their order.
func (f *fleet) first(class string) []string { return f.pending(class + "-first") }

// pending returns the deliveries that wait in a queue, in their order.
func (f *fleet) pending(queue string) (ids []string) {
	f.Helper()
	list, err := f.asynq.ListPendingTasks(queue)
	if err != nil && !errors.Is(err, asynq.ErrQueueNotFound) {
		f.Fatal(err)
	}
	for _, d := range list {
		ids = append(ids, d.ID)
	}
	return ids
}
