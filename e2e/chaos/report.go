package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// report is the result of a run.
type report struct {
	set    settings
	took   time.Duration
	disk   string // description of the log disk
	asked  map[string]int
	broken map[kind]int
	starts map[string]int // by version of a program
	events, accepted,
	excused, forgiven int
	ended       []exit // of workers that take one task
	checks      []check
	all, quiet  []time.Duration // from the death of a worker to the run's next CLI; quiet: while Redis was there
	lives       int
	faultErrors []error
}

// judge makes all checks that need the records; others were made before.
func (r *report) judge(w *world, f *fleet, t *traffic, s *saboteur, left []string, further []check) {
	events, lives := t.ledger.all(), w.witness.all()
	finals := finalsOf(w, events)
	reviews, threads, pools := map[int][]string{}, map[string]string{}, map[string]string{}
	r.forgiven = s.forgive(events, finals)
	for _, e := range events {
		threads[e.token], pools[e.token] = e.thread, e.pool
		if e.accepted {
			r.accepted++
		}
		if e.place == inGitHub && reviews[e.pull] == nil {
			reviews[e.pull] = comments(w.github.Comments(repository, e.pull))
		}
	}
	r.events, r.lives, r.faultErrors = len(events), len(lives), s.errs
	lost, doubled := checkCovered(events, finals)
	r.starts = map[string]int{}
	var members []membership
	for _, p := range append(f.workers, f.door) {
		p.count(r.starts)
		members = append(members, p.memberships()...)
	}
	far := f.workers[len(f.workers)-1].ever()
	overlaps, orphans, excuses := checkOverlaps(lives, threads, func(l life, at time.Time) bool {
		if slices.ContainsFunc(s.emptied, func(e window) bool { return e.noticed(l, at) }) {
			return true
		}
		return slices.Contains(far, l.worker) && slices.ContainsFunc(s.cut, func(c window) bool {
			return c.touches(at, at.Add(time.Millisecond))
		})
	})
	r.excused = excuses
	keys := check{name: "left in redis", looked: 1, broken: left}
	r.checks = append([]check{
		lost, doubled, checkTold(events, finals, lives), checkAnswered(events, finals),
		checkComments(events, finals, reviews), overlaps, orphans,
		checkTakeovers(s.deaths, lives, s.disturbances), checkPools(lives, pools, members), keys,
	}, further...)
	r.all, r.quiet = takeovers(s.deaths, lives, s.outage)
}

func (r *report) ok() bool {
	return r.faults() > 0 && !slices.ContainsFunc(r.checks, func(c check) bool { return len(c.broken) > 0 })
}

func (r *report) faults() (n int) {
	for _, k := range r.broken {
		n += k
	}
	return n
}

// shown is the number of violations that the report lists for each check; the logs have the rest.
const shown = 10

func (r *report) write(w io.Writer) {
	fmt.Fprintf(w, "asked    %d events, %d accepted: %s\n", r.events, r.accepted, tally(r.asked))
	fmt.Fprintf(w, "broken   %d faults: %s (log disk: %s)\n", r.faults(), tally(r.broken), r.disk)
	if r.set.other != "" {
		fmt.Fprintf(w, "mixed    starts of versions: %s\n", tally(r.starts))
	}
	if r.set.once {
		ways := map[string]int{}
		for _, e := range r.ended {
			ways[e.way()]++
		}
		fmt.Fprintf(w, "exits    of workers with one task each: %s\n", tally(ways))
	}
	for _, err := range r.faultErrors {
		fmt.Fprintf(w, "         not broken as planned: %v\n", err)
	}
	fmt.Fprintf(w,
		"lived    %d processes of runs; kill -9 of a worker until its run's CLI lives again: %s; with Redis there: %s\n", r.lives, spread(r.all), spread(r.quiet))
	for _, c := range r.checks {
		c.write(w)
	}
	if r.forgiven > 0 {
		fmt.Fprintf(w, "         %d accepted events were lost with Redis' data or the last writes of a master\n",
			r.forgiven)
	}
	if r.excused > 0 {
		fmt.Fprintf(w,
			"         %d overlaps of the worker that was cut off, or before a run noticed that Redis was emptied\n",
			r.excused)
	}
	verdict := "passed"
	if !r.ok() {
		verdict = fmt.Sprintf("FAILED: repeat with -seed %d -tasks %d -faults %d", r.set.seed,
			r.set.tasks, r.set.faults)
	}
	fmt.Fprintf(w, "chaos: seed %d %s in %s\n", r.set.seed, verdict, r.took.Round(time.Second))
}

func (c *check) write(w io.Writer) {
	mark := "ok  "
	if len(c.broken) > 0 {
		mark = "FAIL"
	}
	fmt.Fprintf(w, "%s     %d %s (of %d)\n", mark, len(c.broken), c.name, c.looked)
	for _, b := range c.broken[:min(len(c.broken), shown)] {
		fmt.Fprintf(w, "         %s\n", b)
	}
}

// tally lists counts, the largest first.
func tally[K ~string](counts map[K]int) string {
	keys := slices.SortedFunc(maps.Keys(counts), func(a, b K) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(string(a), string(b))
	})
	parts := make([]string, len(keys))
	for i, k := range keys {
		parts[i] = fmt.Sprintf("%s %d", k, counts[k])
	}
	return strings.Join(parts, ", ")
}

// spread is median and maximum of durations in order.
func spread(d []time.Duration) string {
	if len(d) == 0 {
		return "none"
	}
	return fmt.Sprintf("%d, median %s, max %s", len(d), d[len(d)/2].Round(100*time.Millisecond),
		d[len(d)-1].Round(100*time.Millisecond))
}
