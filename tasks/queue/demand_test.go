package queue

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/google/go-cmp/cmp"
)

// due returns a waiting task of a repository in its own thread.
func due(n int, class, repo string) store.LiveRecord {
	id := fmt.Sprintf("%016d-fake", n)
	return store.LiveRecord{Record: store.Record{
		ID: id, Thread: id, Class: class, State: store.Waiting, Scopes: []string{"repo:" + repo, "user:fake/ann"},
	}}
}

func idsOf(list []store.LiveRecord) (ids []string) {
	for _, rec := range list {
		ids = append(ids, rec.ID)
	}
	return ids
}

// Only tasks that lack nothing but a slot count as startable.
func TestStartable(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var d Demand
	var want []string
	for i, c := range []struct {
		change func(*store.LiveRecord)
		counts bool
	}{
		{func(r *store.LiveRecord) { r.Class = tasks.Background }, true},
		{func(*store.LiveRecord) {}, true},
		{func(r *store.LiveRecord) { r.At = now.Add(time.Minute) }, false}, // a retry, a usage limit, a budget
		{func(r *store.LiveRecord) { r.At = now.Add(-time.Minute) }, true},
		{func(r *store.LiveRecord) { r.Blocked = store.Blocked{Scope: "user:x", Runs: 1, Max: 1, Place: 1} }, false},
		{func(r *store.LiveRecord) { r.CancelCause = "by ann" }, false},
		{func(r *store.LiveRecord) { r.Unreadable = "x" }, false},
		// also one that waits for a person
		{func(r *store.LiveRecord) { r.State = store.Running; r.Thread = "t" }, false},
		{func(r *store.LiveRecord) { r.Thread = "t" }, false}, // behind it
		{func(r *store.LiveRecord) { r.Thread = "u" }, true},
		{func(r *store.LiveRecord) { r.Thread = "u" }, false},
		{func(r *store.LiveRecord) { r.Scopes = []string{"repo:full"} }, true},
		// the limit of 1 is reached by the one before
		{func(r *store.LiveRecord) { r.Scopes = []string{"repo:full"} }, false},
	} {
		rec := due(i, tasks.Interactive, fmt.Sprint("acme/", i))
		c.change(&rec)
		d.Add(rec, now)
		if c.counts {
			want = append(want, rec.ID)
		}
	}
	want = append(want[1:], want[0]) // the order of the classes
	if diff := cmp.Diff(want, idsOf(d.Startable([]store.Cap{{Scope: "repo:", Max: 1}}))); diff != "" {
		t.Error(diff)
	}
}

// One repository with thousands of tasks delays those of nine others by at most its share of the slots: with all slots
// taken by it, each of the others starts among the first that start.
func TestNoisyRepositoryInOrder(t *testing.T) {
	t.Parallel()
	const slots, noisy, others = 4, 2000, 9
	start := func(loud bool) (order []string) { // all runs take equally long
		var running, waiting []store.LiveRecord
		for i := range noisy {
			if loud {
				waiting = append(waiting, due(i, tasks.Interactive, "acme/noisy"))
			}
		}
		for i := range others {
			waiting = append(waiting, due(noisy+i, tasks.Interactive, fmt.Sprint("acme/", i)))
		}
		if loud {
			for range slots {
				waiting[0].State = store.Running
				running, waiting = append(running, waiting[0]), waiting[1:]
			}
		}
		for len(waiting) > 0 && len(order) < 2*others {
			var d Demand
			for _, rec := range slices.Concat(running, waiting) {
				d.Add(rec, time.Now())
			}
			startable := d.Startable(nil)
			if next := d.ByShare(startable, tasks.Interactive, 1); next != nil {
				startable = next
			}
			i := slices.IndexFunc(waiting, func(rec store.LiveRecord) bool { return rec.ID == startable[0].ID })
			order = append(order, waiting[i].Scopes[0])
			waiting[i].State = store.Running
			running, waiting = append(running, waiting[i]), slices.Delete(waiting, i, i+1)
			if len(running) > slots {
				running = running[1:] // the oldest ends
			}
		}
		return order
	}
	wait := func(order []string) (sum int) {
		for i := range others {
			at := slices.Index(order, fmt.Sprint("repo:acme/", i))
			if at < 0 {
				t.Errorf("acme/%d is not among the first %d", i, len(order))
			}
			sum += at + 1
		}
		return sum
	}
	alone, beside := wait(start(false)), wait(start(true))
	t.Logf("starts until the others start: %d alone, %d beside the noisy one: %.2f", alone, beside,
		float64(beside)/float64(alone))
	if 5*beside > 6*alone {
		t.Errorf("the others wait for %d starts instead of %d", beside, alone)
	}
}

// Whose tasks run more comes later; within a repository, and between equals, the order is that of the IDs.
func TestByShare(t *testing.T) {
	t.Parallel()
	var d Demand
	n := 0
	add := func(repo, class string, change func(*store.LiveRecord)) string {
		n++
		rec := due(n, class, repo)
		if change != nil {
			change(&rec)
		}
		d.Add(rec, time.Now())
		return rec.ID
	}
	add("a", tasks.Review, func(r *store.LiveRecord) { r.State = store.Running })
	a1, a2 := add("a", tasks.Interactive, nil), add("a", tasks.Interactive, nil)
	b1, b2, b3 := add("b", tasks.Interactive, nil), add("b", tasks.Interactive, nil), add("b", tasks.Interactive, nil)
	c1 := add("c", tasks.Interactive, nil)
	resumed := add("a", tasks.Interactive, func(r *store.LiveRecord) { r.Fence = 1 })
	add("a", tasks.Review, nil)
	startable := d.Startable(nil)
	if diff := cmp.Diff([]string{resumed, b1, c1, a1, b2, a2, b3},
		idsOf(d.ByShare(startable, tasks.Interactive, 10))); diff != "" {
		t.Error(diff)
	}
	if list := d.ByShare(startable, tasks.Interactive, 2); len(list) != 2 {
		t.Errorf("%d of 2", len(list))
	}
	if list := d.ByShare(startable, tasks.Review, 10); len(list) != 1 {
		t.Errorf("all of one repository: %v", idsOf(list))
	}
}
