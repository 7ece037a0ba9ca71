package tasks

import "sync"

// slots are how many runs a worker has at once. Automatic work never takes the last one, so that a person does not wait behind it.
type slots struct {
	mu    sync.Mutex
	total int
	taken map[string]int
	sum   int
}

func newSlots(n int) *slots { return &slots{total: max(n, 2), taken: map[string]int{}} }

// limit is how many slots a class may have of n.
func limit(class string, n int) int {
	switch class {
	case Interactive:
		return n
	case Review:
		return max(n-1, 1)
	case Background:
		return max(n/2, 1)
	default:
		return 1
	}
}

// take gets a slot for a class, and what gives it back; false when there is none.
func (s *slots) take(class string) (release func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	automatic := s.sum - s.taken[Interactive]
	switch {
	case s.sum >= s.total, s.taken[class] >= limit(class, s.total):
		return nil, false
	case class != Interactive && automatic >= s.total-1:
		return nil, false // review, background and maintenance together leave one as well
	}
	s.taken[class]++
	s.sum++
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.taken[class]--
		s.sum--
	}), true
}

// running is how many slots are taken.
func (s *slots) running() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sum
}
