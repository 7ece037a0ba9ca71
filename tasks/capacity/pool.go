package capacity

import (
	"maps"
	"slices"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// InPool returns the workers of a pool.
func InPool(seen []store.Worker, pool string) (list []store.Worker) {
	for _, w := range seen {
		if w.Pool == pool {
			list = append(list, w)
		}
	}
	return list
}

// noPool says that no worker of a pool is alive.
func noPool(pool string) string { return "no worker of pool " + tasks.PoolName(pool) + " is running" }

// WhyNoWorkerIn explains to the asker of a task, as a clause, why no worker of its pool can run it; empty if one can.
func WhyNoWorkerIn(seen []store.Worker, pool string) string {
	members := InPool(seen, pool)
	if len(members) == 0 && (pool != "" || len(seen) > 0) {
		return noPool(pool)
	}
	why := WhyNoWorker(members)
	if why != "" && (pool != "" || len(members) < len(seen)) {
		why = "pool " + tasks.PoolName(pool) + ": " + why
	}
	return why
}

// WhyNoWorkerFor explains the same, and that none of those workers is set up for the task's source.
func WhyNoWorkerFor(seen []store.Worker, pool, source string) string {
	why := WhyNoWorkerIn(seen, pool)
	if why == "" && !Served(InPool(seen, pool), source) {
		return "no worker is set up for " + source
	}
	return why
}

// PoolState is a pool with its workers and its live tasks.
type PoolState struct {
	Name    string `json:"name"`
	Workers int    `json:"workers"`
	Slots   int    `json:"slots"`
	Running int    `json:"running"`           // slots that are taken
	Waiting int    `json:"waiting"`           // tasks that wait, for whatever reason
	Problem string `json:"problem,omitempty"` // why its tasks do not run
}

// Pools returns the default pool and then the others, by name: those in names, which are of repositories, and those
// with workers or live tasks.
func Pools(names []string, live []store.LiveRecord, seen []store.Worker) []PoolState {
	pools := map[string]*PoolState{}
	at := func(pool string) *PoolState {
		if pools[pool] == nil {
			pools[pool] = &PoolState{Name: tasks.PoolName(pool)}
		}
		return pools[pool]
	}
	at("")
	for _, name := range names {
		at(tasks.ParsePool(name))
	}
	for _, w := range seen {
		p := at(w.Pool)
		p.Workers, p.Slots, p.Running = p.Workers+1, p.Slots+w.Slots, p.Running+w.Running
	}
	for _, rec := range live {
		if rec.State == store.Waiting {
			at(rec.Pool).Waiting++
		}
	}
	var list []PoolState
	for _, pool := range slices.Sorted(maps.Keys(pools)) { // the default one is first, because its name is empty
		p := pools[pool]
		needed := pool != "" || p.Waiting > 0 || len(seen) == 0 || slices.Contains(names, tasks.DefaultPool)
		if p.Workers > 0 || needed {
			p.Problem = WhyNoWorkerIn(seen, pool)
		}
		list = append(list, *p)
	}
	return list
}
