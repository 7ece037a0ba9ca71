package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/e2e/chaos/script"
)

// The time for errand to finish after the last fault, and for its processes to end after the stop. The first covers a
// takeover, three attempts with their pauses, and a usage limit.
const (
	finishFor = 20 * time.Minute // for what still waits after the last fault
	stuckFor  = 3 * time.Minute  // without a task that gets done
	goneFor   = 15 * time.Second
)

// rampage executes the plan, waits, stops the fleet, checks and reports.
func rampage(ctx context.Context, set settings, out io.Writer) (ok bool, err error) {
	begun := time.Now()
	w, err := newWorld(set)
	if err != nil {
		return false, err
	}
	keep := filepath.Join(w.dir, "runs") // of failed runs
	defer func() {
		if ok {
			keep = ""
		} else {
			fmt.Fprintln(out, "kept: "+w.dir)
		}
		err = errors.Join(err, w.close(keep))
	}()
	f, err := newFleet(ctx, set, w)
	defer f.close()
	if err != nil {
		return false, err
	}
	p := newPlan(set)
	t, s := newTraffic(w, f.base), newSaboteur(w, f)
	var both sync.WaitGroup
	both.Go(func() { s.play(ctx, p.faults, set.span); w.clear() })
	both.Go(func() { t.play(ctx, p.steps) })
	both.Wait()
	if ctx.Err() != nil {
		t.leave()
		return false, context.Cause(ctx)
	}
	r := &report{set: set, disk: w.disk.what(), broken: s.counts()}
	if err := finish(ctx, w, f, t, s, r); err != nil {
		return false, err
	}
	r.took, r.asked = time.Since(begun), t.counts
	r.write(out)
	return r.ok(), nil
}

// finish waits until errand has done everything, stops it, and checks what is left.
func finish(ctx context.Context, w *world, f *fleet, t *traffic, s *saboteur, r *report) error {
	client := f.redis.client()
	defer client.Close()
	quiet := awaitQuiet(ctx, w, t, s, client)
	t.leave()
	w.note("quiet: %v", quiet)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	left, err := leftovers(ctx, client)
	if err != nil {
		return err
	}
	stops := check{name: "stops", looked: len(f.workers) + 1}
	if err := f.stop(); err != nil {
		stops.breaks("%v", err)
	}
	for _, p := range append(f.workers, f.door) {
		if n := p.unasked(); n > 0 {
			stops.breaks("%s ended unexpectedly %d times", p.name, n)
		}
		r.ended = append(r.ended, p.ended()...)
	}
	exits := checkExits(r.ended, s.away, s.failures)
	gone := checkGone(ctx, w)
	if after, err := leftovers(ctx, client); err != nil {
		return err
	} else if len(after) > len(left) {
		left = after
	}
	r.judge(w, f, t, s, left, []check{gone, stops, exits})
	return nil
}

// awaitQuiet waits until every accepted event has its final message and Redis holds no live task. It gives up when
// nothing has got done for stuckFor.
func awaitQuiet(ctx context.Context, w *world, t *traffic, s *saboteur, client redis.UniversalClient) bool {
	ctx, cancel := context.WithTimeout(ctx, finishFor)
	defer cancel()
	inbox := asynq.NewInspectorFromRedisClient(client)
	least, last := math.MaxInt, time.Now()
	for ctx.Err() == nil && time.Since(last) < stuckFor {
		t.askEndings(ctx)
		t.askOutcomes(inbox)
		events := t.ledger.all()
		finals := finalsOf(w, events)
		s.forgive(events, finals)
		lost, _ := checkCovered(events, finals)
		left, err := leftovers(ctx, client)
		undone := len(lost.broken) + len(left)
		if undone == 0 && err == nil {
			return true
		}
		if undone < least && err == nil {
			least, last = undone, time.Now()
		}
		pause(ctx, time.Second)
	}
	return false
}

// checkGone checks that no process of a run is left after errand has stopped, by the witness's connections, which the
// kernel closes, and by the marker in the environment.
func checkGone(ctx context.Context, w *world) check {
	c := check{name: "processes left"}
	ctx, cancel := context.WithTimeout(ctx, goneFor)
	defer cancel()
	for {
		c.broken = nil
		for _, role := range []string{script.CLI, script.Tool} {
			for _, l := range w.witness.present(role) {
				c.breaks("%s %d of run %s holds its connection", role, l.pid, l.run)
			}
		}
		for _, pid := range marked(w.dir) {
			c.breaks("process %d has the mark of a run", pid)
		}
		all := w.witness.all()
		for _, l := range all {
			if l.role == script.CLI && l.keeper.alive() {
				c.breaks("keeper %d of run %s is alive", l.keeper.pid, l.run)
			}
		}
		c.looked = len(all)
		if len(c.broken) == 0 || ctx.Err() != nil {
			return c
		}
		pause(ctx, 200*time.Millisecond)
	}
}
