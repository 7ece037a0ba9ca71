package tasks

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/store"
)

// A pool is a named group of workers. A repository's tasks run only on workers of its pool. Each pool has a queue for
// each class. Records and heartbeats name the default pool by the empty string; people see its name.

// DefaultPool is the name of the pool of repositories and workers that name none, and of tasks without a repository.
const DefaultPool = "default"

// PoolName returns the name of a record's or a worker's pool for people.
func PoolName(pool string) string { return cmp.Or(pool, DefaultPool) }

// ParsePool is the inverse of PoolName.
func ParsePool(name string) (pool string) {
	if name == DefaultPool {
		return ""
	}
	return name
}

// PoolOf returns the pool that a task belongs to according to its repository. A task whose repository is no longer
// allowed stays where it is.
func (p Policy) PoolOf(rec store.Record) string {
	name := strings.TrimPrefix(repoOf(rec), repoScope)
	if name == "" {
		return ""
	}
	repo, err := p.Allowed(name)
	if err != nil {
		return rec.Pool
	}
	return repo.Pool
}

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
func noPool(pool string) string { return "no worker of pool " + PoolName(pool) + " is running" }

// WhyNoWorkerIn explains to the asker of a task, as a clause, why no worker of its pool can run it; empty if one can.
func WhyNoWorkerIn(seen []store.Worker, pool string) string {
	members := InPool(seen, pool)
	if len(members) == 0 && (pool != "" || len(seen) > 0) {
		return noPool(pool)
	}
	why := WhyNoWorker(members)
	if why != "" && (pool != "" || len(members) < len(seen)) {
		why = "pool " + PoolName(pool) + ": " + why
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

// Pools returns the pools of the fleet; see the function of that name.
func (f *Fleet) Pools(live []store.LiveRecord, seen []store.Worker) []PoolState {
	return Pools(f.desk.policy.Pools, live, seen)
}

// Pools returns the default pool and then the others, by name: those in names, which are of repositories, and those
// with workers or live tasks.
func Pools(names []string, live []store.LiveRecord, seen []store.Worker) []PoolState {
	pools := map[string]*PoolState{}
	at := func(pool string) *PoolState {
		if pools[pool] == nil {
			pools[pool] = &PoolState{Name: PoolName(pool)}
		}
		return pools[pool]
	}
	at("")
	for _, name := range names {
		at(ParsePool(name))
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
		needed := pool != "" || p.Waiting > 0 || len(seen) == 0 || slices.Contains(names, DefaultPool)
		if p.Workers > 0 || needed {
			p.Problem = WhyNoWorkerIn(seen, pool)
		}
		list = append(list, *p)
	}
	return list
}

// poolQueues returns those of asynq's queues that belong to other pools than the default one, sorted by pool, and then
// by class as Classes.
func poolQueues(queues []string) (list []string) {
	for _, queue := range queues {
		if pool, class := store.CutQueue(queue); pool != "" && slices.Contains(Classes, class) {
			list = append(list, queue)
		}
	}
	slices.SortFunc(list, func(a, b string) int {
		poolA, classA := store.CutQueue(a)
		poolB, classB := store.CutQueue(b)
		return cmp.Or(strings.Compare(poolA, poolB),
			cmp.Compare(slices.Index(Classes, classA), slices.Index(Classes, classB)))
	})
	return list
}
