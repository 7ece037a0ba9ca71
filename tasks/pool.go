package tasks

import (
	"cmp"
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
