package worker

import (
	"fmt"
	"slices"
	"testing"

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
	next := must(f.rdb.LRange(t.Context(), "asynq:{"+tasks.Interactive+"}:pending", -2, -1).Result())
	if !slices.Equal(next, []string{ids[3], ids[0]}) { // the last is taken first
		t.Errorf("the next are %q of %q", next, ids)
	}
}

// isNext waits until a task's delivery is the next of its class.
func (f *fleet) isNext(id string) {
	f.Helper()
	for f.Context().Err() == nil {
		if next := must(f.rdb.LRange(f.Context(), "asynq:{"+tasks.Interactive+"}:pending", -1, -1).Result()); slices.Equal(next, []string{id}) {
			return
		}
	}
}
