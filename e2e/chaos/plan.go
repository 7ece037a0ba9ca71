package main

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// plan is the list of requests and the list of faults, in order of time.
type plan struct {
	steps  []step
	faults []fault
}

// newPlan makes the plan of a seed. Traffic and faults have separate random sources, so that one can change without the
// other.
func newPlan(s settings) plan {
	return plan{
		steps:  planTraffic(rand.New(rand.NewPCG(s.seed, 1)), s.tasks, s.span), //nolint:gosec // must be reproducible
		faults: planFaults(rand.New(rand.NewPCG(s.seed, 2)), s),                //nolint:gosec // likewise
	}
}

// moment is a time in the plan, anywhere in the span.
func moment(r *rand.Rand, span time.Duration) time.Duration {
	return time.Duration(r.Int64N(int64(span))).Round(time.Millisecond)
}

// between is a duration from a to b.
func between(r *rand.Rand, a, b time.Duration) time.Duration {
	return (a + time.Duration(r.Int64N(int64(b-a)))).Round(time.Millisecond)
}

// weighted is one of several things and how often it is chosen.
type weighted[T any] struct {
	weight int
	thing  T
}

func choose[T any](r *rand.Rand, things []weighted[T]) T {
	sum := 0
	for _, t := range things {
		sum += t.weight
	}
	n := r.IntN(sum)
	for _, t := range things {
		if n -= t.weight; n < 0 {
			return t.thing
		}
	}
	return things[0].thing
}

// moments are n times in the span, in order.
func moments(r *rand.Rand, n int, span time.Duration) []time.Duration {
	all := make([]time.Duration, n)
	for i := range all {
		all[i] = moment(r, span)
	}
	slices.SortFunc(all, cmp.Compare[time.Duration])
	return all
}
