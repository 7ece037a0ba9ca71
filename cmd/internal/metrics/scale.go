package metrics

import (
	"slices"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/capacity"
	"github.com/errand-fleet/errand/tasks/queue"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/tasks/worker/machine"
)

// usualSlots is the number of slots of a worker while none is alive.
const usualSlots = 4

// poolNeed is what a pool needs.
type poolNeed struct {
	pool      string
	wanted    int            // workers that can run that
	startable map[string]int // tasks by class
}

// needs returns what each pool needs now: the default one, those of repositories, and those with workers or live tasks.
func (f Fleet) needs(p rights.Policy, now time.Time) (list []poolNeed) {
	var demand queue.Demand
	for _, rec := range f.Live {
		demand.Add(rec, now)
	}
	startable := demand.Startable(p.Limits.Caps()) // limits are for all pools together
	for _, pool := range capacity.Pools(p.Pools, f.Live, f.Workers) {
		need := poolNeed{pool: tasks.ParsePool(pool.Name), startable: map[string]int{}}
		own := f.in(need.pool)
		if own.mayStart(now) {
			for _, rec := range startable {
				if _, paused := f.Paused[rec.Class]; rec.Pool == need.pool && !paused {
					need.startable[rec.Class]++
				}
			}
		}
		running := map[string]int{}
		for _, rec := range demand.Running() {
			if rec.Pool == need.pool {
				running[rec.Class]++
			}
		}
		need.wanted = own.need(running, need.startable)
		list = append(list, need)
	}
	return list
}

// in returns the part of the fleet that belongs to a pool.
func (f Fleet) in(pool string) Fleet {
	f.Workers = capacity.InPool(f.Workers, pool)
	var live []store.LiveRecord
	for _, rec := range f.Live {
		if rec.Pool == pool {
			live = append(live, rec)
		}
	}
	f.Live = live
	return f
}

// slots returns the number of slots that a further worker would probably have.
func (f Fleet) slots() int {
	sum := 0
	for _, w := range f.Workers {
		sum += w.Slots
	}
	if sum == 0 {
		return usualSlots
	}
	return max(sum/len(f.Workers), 2)
}

// mayStart reports whether a credential in use lets runs start.
func (f Fleet) mayStart(now time.Time) bool {
	stopped := map[string]bool{}
	for _, c := range f.Credentials {
		stopped[c.Name] = c.Refused != "" || c.Until.After(now)
	}
	return len(f.Workers) == 0 || slices.ContainsFunc(f.Workers, func(w store.Worker) bool {
		return !stopped[w.Credential]
	})
}

// need returns how many workers can run what runs and could start.
func (f Fleet) need(running, startable map[string]int) (workers int) {
	slots, total, automatic := f.slots(), 0, 0
	each := func(n, slots int) { workers = max(workers, (n+slots-1)/slots) }
	for _, class := range tasks.Classes {
		n := running[class] + startable[class]
		each(n, machine.SlotsOf(class, slots))
		if total += n; class != tasks.Interactive {
			automatic += n
		}
	}
	each(total, slots)
	each(automatic, slots-1) // a worker keeps one for people
	return workers
}
