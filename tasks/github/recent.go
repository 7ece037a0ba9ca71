package github

import (
	"maps"
	"sync"
	"time"
)

// recent are answers of GitHub's that were asked for a moment ago, by what they are about. Safe for concurrent use; the zero value is empty.
type recent[T any] struct {
	mu    sync.Mutex
	known map[string]answer[T]
}

type answer[T any] struct {
	value T
	until time.Time
}

const (
	// recentLife is for how long an answer counts, and so how long somebody who was shut out may still have us work.
	recentLife = 30 * time.Second
	maxRecent  = 1000
)

func (r *recent[T]) get(key string, now time.Time) (T, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, ok := r.known[key]
	return a.value, ok && now.Before(a.until)
}

func (r *recent[T]) put(key string, value T, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.known) >= maxRecent {
		maps.DeleteFunc(r.known, func(_ string, a answer[T]) bool { return !now.Before(a.until) })
	}
	if r.known == nil || len(r.known) >= maxRecent {
		r.known = map[string]answer[T]{} // a crowd: to ask again costs less than to remember it
	}
	r.known[key] = answer[T]{value, now.Add(recentLife)}
}
