package queue

import (
	"cmp"
	"slices"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/scope"
)

// Demand collects live tasks, to tell those that need a slot from those that wait for something else: their thread, a
// limit, a time or a person. The zero value is ready for use by one goroutine.
type Demand struct {
	running []store.LiveRecord
	waiting []store.LiveRecord // due, and not refused by a limit
	first   map[string]string  // the first live task of each thread
	busy    map[string]bool    // threads with a run
}

// Add adds a live task. Tasks come in the order of their IDs.
func (d *Demand) Add(rec store.LiveRecord, now time.Time) {
	if d.first == nil {
		d.first, d.busy = map[string]string{}, map[string]bool{}
	}
	if _, known := d.first[rec.Thread]; !known {
		d.first[rec.Thread] = rec.ID
	}
	switch {
	case rec.Unreadable != "":
	case rec.State == store.Running:
		d.busy[rec.Thread] = true
		d.running = append(d.running, rec)
	case rec.State == store.Waiting && rec.CancelCause == "" && !rec.At.After(now) &&
		rec.Blocked == (store.Blocked{}) && d.first[rec.Thread] == rec.ID:
		d.waiting = append(d.waiting, rec)
	}
}

// Running returns the running tasks.
func (d *Demand) Running() []store.LiveRecord { return d.running }

// Startable returns the tasks that would start now if there were enough slots, in the order of their classes and IDs.
func (d *Demand) Startable(caps []store.Cap) []store.LiveRecord {
	taken := map[string]int{}
	take := func(rec store.LiveRecord, most bool) bool {
		var scopes []string
		for _, c := range caps {
			for _, scope := range c.Of(rec.Scopes) {
				if most && taken[scope] >= c.Max {
					return false
				}
				scopes = append(scopes, scope)
			}
		}
		for _, scope := range scopes {
			taken[scope]++
		}
		return true
	}
	for _, rec := range d.running {
		take(rec, false)
	}
	list := slices.Clone(d.waiting)
	slices.SortStableFunc(list, func(a, b store.LiveRecord) int {
		return cmp.Compare(slices.Index(tasks.Classes, a.Class), slices.Index(tasks.Classes, b.Class))
	})
	return slices.DeleteFunc(list, func(rec store.LiveRecord) bool { return d.busy[rec.Thread] || !take(rec, true) })
}

// ByShare returns at most n of a queue's startable tasks in the order in which they should start, so that a repository
// with many of them delays those of others by no more than its share: the next task of a repository comes after those
// of repositories with fewer tasks that run or come before. Tasks that have run before come first, because they had
// their turn.
func (d *Demand) ByShare(startable []store.LiveRecord, queue string, n int) []store.LiveRecord {
	before := map[string]int{} // tasks of a repository that run or come first
	for _, rec := range d.running {
		before[scope.Name(rec.Scopes, scope.Repository)]++
	}
	type turn struct {
		rec  store.LiveRecord
		rank int
	}
	var turns []turn
	for _, rec := range startable {
		if rec.Queue() != queue {
			continue
		}
		repo := scope.Name(rec.Scopes, scope.Repository)
		rank := 0
		if rec.Fence == 0 {
			before[repo]++
			rank = before[repo]
		}
		turns = append(turns, turn{rec, rank})
	}
	slices.SortStableFunc(turns, func(a, b turn) int { return cmp.Compare(a.rank, b.rank) })
	list := make([]store.LiveRecord, min(n, len(turns)))
	for i := range list {
		list[i] = turns[i].rec
	}
	return list
}
