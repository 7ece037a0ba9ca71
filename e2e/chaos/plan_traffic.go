package main

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/errand-fleet/errand/e2e/chaos/script"
)

// place is where a request is made.
type place string

const (
	inSlack  place = "slack"
	inGitHub place = "github"
	inChat   place = "chat"
)

// step is one request, or the cancel of one.
type step struct {
	at     time.Duration
	place  place
	thread int // of this place; a used number means a follow-up
	orders script.Orders
	cancel string // the token of the request to cancel; all other fields except at are zero

	again int           // number of repeated deliveries
	twin  bool          // Slack: the same mention also arrives as a message event
	late  time.Duration // the delivery is held back, so that later ones overtake it
}

// recent is the number of threads of a place that get follow-ups.
const recent = 8

// planTraffic makes tasks for all three places, many of them follow-ups in threads that are probably busy, and cancels
// of some.
func planTraffic(r *rand.Rand, tasks int, span time.Duration) []step {
	threads := map[place]int{}
	var steps []step
	for i, at := range moments(r, tasks, span) {
		p := choose(r, []weighted[place]{{65, inSlack}, {15, inGitHub}, {20, inChat}})
		s := step{at: at, place: p, thread: threads[p], orders: randomOrders(r, script.Token(i))}
		if r.IntN(100) < 45 && threads[p] > 0 {
			s.thread = max(0, threads[p]-1-r.IntN(recent))
		} else {
			threads[p]++
		}
		if r.IntN(10) == 0 {
			s.again = 1 + r.IntN(2)
		}
		s.twin = r.IntN(3) == 0
		if r.IntN(10) == 0 {
			s.late = between(r, 100*time.Millisecond, 3*time.Second)
		}
		steps = append(steps, s)
		if r.IntN(16) == 0 {
			steps = append(steps, step{at: at + between(r, 10*time.Millisecond, 6*time.Second), cancel: s.orders.Token})
		}
	}
	slices.SortStableFunc(steps, func(a, b step) int { return int(a.at - b.at) })
	return steps
}

// randomOrders are mostly short and harmless.
func randomOrders(r *rand.Rand, token string) script.Orders {
	o := script.Orders{Token: token, Work: between(r, 50*time.Millisecond, 2500*time.Millisecond)}
	if r.IntN(8) == 0 {
		o.Work = between(r, 4*time.Second, 12*time.Second)
	}
	o.Tool = r.IntN(5) == 0
	o.Stubborn = r.IntN(12) == 0
	o.Crash = r.IntN(40) == 0
	o.Big = r.IntN(15) == 0
	o.Ask = r.IntN(8) == 0
	return o
}
