package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/errand-fleet/errand/e2e/chaos/script"
)

// A drill of takeovers: busy workers with long runs, of which one dies and is replaced.
const (
	drillSlots  = 8
	drillRuns   = 20              // of three workers: one is nearly idle, or all are half full
	drillWork   = time.Hour       // longer than the drill
	replaced    = 2 * time.Second // after its death
	busyWithin  = 3 * time.Minute // until all runs work
	againWithin = 4 * time.Minute // until they work again; the check has the bound
	watchEach   = 50 * time.Millisecond
)

// drillTakeovers kills the busiest worker of a fleet with long runs, and checks when its runs' CLIs live again.
func drillTakeovers(ctx context.Context, set settings, out io.Writer) (ok bool, err error) {
	w, err := newWorld(set)
	if err != nil {
		return false, err
	}
	keep := w.dir
	defer func() {
		if ok {
			keep = ""
		}
		err = errors.Join(err, w.close(keep))
	}()
	f, err := newFleet(ctx, set, w)
	defer f.close()
	if err != nil {
		return false, err
	}
	t := newTraffic(w, f.base)
	defer t.leave()
	for i := range drillRuns {
		t.streams.Go(func() {
			t.chat(ctx, step{place: inChat, thread: 2*i + 1, orders: script.Orders{Token: script.Token(i), Work: drillWork}})
		})
	}
	if err := t.fill(ctx, set.waiting); err != nil {
		return false, err
	}
	runs := drillRuns + min(set.waiting, 1)
	if !w.working(ctx, runs, busyWithin) {
		return false, errors.New("the runs do not all work")
	}
	d, err := f.killBusiest(ctx, w)
	if err != nil {
		return false, err
	}
	w.working(ctx, runs, againWithin)
	deaths, lives := []death{d}, w.witness.all()
	late := checkTakeovers(deaths, lives, func(int) []window { return nil })
	if alive := len(w.witness.present(script.CLI)); alive < runs {
		late.breaks("%d of %d runs live at the end", alive, runs)
	}
	late.write(out)
	all, _ := takeovers(deaths, lives, nil)
	ok = len(late.broken) == 0 && late.looked > 0
	fmt.Fprintf(out, "chaos: kill -9 of a worker until the CLIs of its runs live again: %s; passed: %t\n", spread(all), ok)
	return ok, nil
}

// fill asks for n tasks in one repository, whose limit lets one of them run. It does not wait for their answers.
func (t *traffic) fill(ctx context.Context, n int) error {
	const senders = 16
	var all sync.WaitGroup
	var asked atomic.Int64
	failed := make(chan error, senders)
	for range senders {
		all.Go(func() {
			for i := int(asked.Add(1)); i <= n; i = int(asked.Add(1)) {
				orders := script.Orders{Token: script.Token(drillRuns + i), Work: drillWork}
				resp, err := t.call(ctx, http.MethodPost, "/api/chat", map[string]string{
					"message": "please do " + orders.String(), "thread": fmt.Sprintf("waits-%d", i), "repo": repository,
				})
				if err != nil {
					failed <- err
					return
				}
				_ = resp.Body.Close() // the task goes on
			}
		})
	}
	all.Wait()
	close(failed)
	return <-failed
}

// working waits until as many CLIs have taken up their messages.
func (w *world) working(ctx context.Context, runs int, atMost time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	for {
		up := slices.DeleteFunc(w.witness.present(script.CLI), func(l life) bool { return len(l.taken) == 0 })
		if len(up) >= runs {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		pause(ctx, watchEach)
	}
}

// killBusiest kills the worker with the most runs and starts another one in its place.
func (f *fleet) killBusiest(ctx context.Context, w *world) (death, error) {
	runs := map[int]int{}
	for _, l := range w.witness.present(script.CLI) {
		runs[l.worker]++
	}
	busiest := slices.MaxFunc(f.workers, func(a, b *process) int { return runs[a.pid()] - runs[b.pid()] })
	d := death{busiest.pid(), time.Now()}
	w.note("drill: kill %s, pid %d, with %d runs", busiest.name, d.worker, runs[d.worker])
	return d, bounce(ctx, busiest, syscall.SIGKILL, workerStop, replaced)
}
