package metrics

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/capacity"
	"github.com/errand-fleet/errand/tasks/queue"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/tasks/worker/machine"
)

const (
	// riseAfter is how long more workers must be needed, so that a burst of short tasks starts none.
	riseAfter = 30 * time.Second
	// fallAfter is how long fewer workers must be needed, because stopping a worker interrupts its runs.
	fallAfter = 10 * time.Minute
	// usualSlots is the number of slots of a worker while none has ever been alive.
	usualSlots = 4
)

// scale computes the number of workers that a pool should have. The number follows the need slowly: it is at least what
// was needed throughout riseAfter, and at most what was needed at some time in fallAfter. So it turns at most twice in
// it.
type scale struct {
	slots  int // of a worker
	wanted int
	needed []needed // for fallAfter and the one before, the oldest first
}

// needed is how many workers were needed from a time on.
type needed struct {
	at      time.Time
	workers int
}

// scales has the scale of each pool. It is safe for concurrent use.
type scales struct {
	limits rights.Limits
	pools  []string // of repositories

	mu    sync.Mutex
	scale map[string]*scale
}

// poolNeed is what a pool needs.
type poolNeed struct {
	pool      string
	wanted    int            // workers that it should have now
	startable map[string]int // tasks by class
}

// of returns what each pool needs now: the default one, those of repositories, and those with workers or live tasks.
func (s *scales) of(f Fleet, now time.Time) (list []poolNeed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var demand queue.Demand
	for _, rec := range f.Live {
		demand.Add(rec, now)
	}
	startable := demand.Startable(s.limits.Caps("")) // limits are for all pools together
	kept := map[string]*scale{}
	for _, p := range capacity.Pools(s.pools, f.Live, f.Workers) {
		pool := tasks.ParsePool(p.Name)
		if kept[pool] = s.scale[pool]; kept[pool] == nil {
			kept[pool] = &scale{}
		}
		own, need := f.in(pool), poolNeed{pool: pool, startable: map[string]int{}}
		if own.mayStart(now) {
			for _, rec := range startable {
				if _, paused := f.Paused[rec.Class]; rec.Pool == pool && !paused {
					need.startable[rec.Class]++
				}
			}
		}
		running := map[string]int{}
		for _, rec := range demand.Running() {
			if rec.Pool == pool {
				running[rec.Class]++
			}
		}
		workers := own.need(kept[pool].slotsOf(own), s.limits, running, need.startable)
		need.wanted = kept[pool].next(workers, len(own.Workers), now)
		list = append(list, need)
	}
	s.scale = kept
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

// slotsOf returns the number of slots that a further worker would probably have.
func (s *scale) slotsOf(f Fleet) int {
	sum := 0
	for _, w := range f.Workers {
		sum += w.Slots
	}
	if sum > 0 {
		s.slots = max(sum/len(f.Workers), 2)
	}
	if s.slots == 0 {
		s.slots = usualSlots
	}
	return s.slots
}

// next returns the number that is wanted when need workers are needed. It begins with the number of workers that there
// are, because a front door that has just started does not know what was needed before.
func (s *scale) next(need, workers int, now time.Time) int {
	if s.needed == nil {
		s.wanted, s.needed = workers, []needed{{now, workers}}
	}
	s.needed = append(s.needed, needed{now, need})
	for len(s.needed) > 1 && now.Sub(s.needed[1].at) >= fallAfter {
		s.needed = s.needed[1:]
	}
	least, most := need, need
	for i, n := range s.needed {
		most = max(most, n.workers)
		if i+1 == len(s.needed) || now.Sub(s.needed[i+1].at) < riseAfter {
			least = min(least, n.workers)
		}
	}
	s.wanted = max(least, min(s.wanted, most))
	return s.wanted
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

// need returns how many workers with that number of slots can run what runs and could start.
func (f Fleet) need(slots int, limits rights.Limits, running, startable map[string]int) (workers int) {
	most := math.MaxInt
	if limits.Credential > 0 {
		credentials := map[string]bool{}
		for _, w := range f.Workers {
			credentials[w.Credential] = true
		}
		most = limits.Credential * max(len(credentials), 1)
	}
	total, automatic := 0, 0
	each := func(n, slots int) { workers = max(workers, (min(n, most)+slots-1)/slots) }
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
