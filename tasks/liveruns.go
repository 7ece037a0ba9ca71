package tasks

import (
	"context"
	"sync"
)

// liveRuns are the runs of this worker, to be interrupted by its drain.
type liveRuns struct {
	mu    sync.Mutex
	stops map[int]context.CancelCauseFunc
	next  int
	cause error // set once drained
}

// add registers a run until forget is called. During a drain it is stopped at once.
func (l *liveRuns) add(stop context.CancelCauseFunc) (forget func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stops == nil {
		l.stops = map[int]context.CancelCauseFunc{}
	}
	if l.cause != nil {
		stop(l.cause)
	}
	n := l.next
	l.next++
	l.stops[n] = stop
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.stops, n)
	}
}

// drain stops all runs, present and to come.
func (l *liveRuns) drain(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cause = cause
	for _, stop := range l.stops {
		stop(cause)
	}
}

func (l *liveRuns) draining() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause != nil
}
