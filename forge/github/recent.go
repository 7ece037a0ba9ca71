package github

import (
	"maps"
	"sync"
	"time"
)

// Recent caches answers of GitHub for [RecentLife]. It is safe for concurrent use; the zero value is empty.
type Recent[T any] struct {
	mu    sync.Mutex
	known map[string]recentEntry[T]
}

type recentEntry[T any] struct {
	value T
	until time.Time
}

const (
	// RecentLife is how long an answer counts, and so how long an account that lost its access may still have errand work.
	RecentLife = 30 * time.Second
	maxRecent  = 1000
)

// Get returns the answer for a key, if it is recent enough.
func (r *Recent[T]) Get(key string, now time.Time) (T, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.known[key]
	return e.value, ok && now.Before(e.until)
}

// Put stores the answer for a key.
func (r *Recent[T]) Put(key string, value T, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.known) >= maxRecent {
		maps.DeleteFunc(r.known, func(_ string, e recentEntry[T]) bool { return !now.Before(e.until) })
	}
	if r.known == nil || len(r.known) >= maxRecent {
		r.known = map[string]recentEntry[T]{} // asking again costs less than remembering that many
	}
	r.known[key] = recentEntry[T]{value, now.Add(RecentLife)}
}
