package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/errand-fleet/errand/agent"
)

// idleCost is what a waiting run takes in the worker. Memory is in bytes.
type idleCost struct {
	Heap       float64 `json:"heap"` // heap and stacks
	RSS        float64 `json:"rss"`
	Goroutines int     `json:"goroutines"`
}

// idle has a worker supervise many runs whose CLI is silent in its turn.
func (b *bench) idle(ctx context.Context) error {
	var cost idleCost
	if err := b.ask(ctx, order{Job: "idle", Runs: b.Idle}, &cost); err != nil {
		return err
	}
	b.report.Most("heap and stacks of an idle run in the worker", cost.Heap/(1<<10), 250, "%.0f KB")
	b.report.Most("goroutines of an idle run", float64(cost.Goroutines), 6, "%.0f")
	b.report.Note("RSS of an idle run in the worker", cost.RSS/(1<<10), "%.0f KB")
	return nil
}

// idleRuns is the worker's part.
func idleRuns(ctx context.Context, runner *agent.Runner, o order) (idleCost, error) {
	// Memory that the first run keeps permanently, such as type caches, is not counted.
	if err := waiting(ctx, runner, 1, func() error { return nil }); err != nil {
		return idleCost{}, err
	}
	before, err := memory()
	if err != nil {
		return idleCost{}, err
	}
	var cost idleCost
	err = waiting(ctx, runner, o.Runs, func() error {
		after, err := memory()
		if err != nil {
			return err
		}
		runs := float64(o.Runs)
		cost = idleCost{
			Heap: (after.heap - before.heap) / runs, RSS: (after.rss - before.rss) / runs,
			Goroutines: (after.goroutines - before.goroutines) / o.Runs,
		}
		return nil
	})
	return cost, err
}

// waiting calls measure while count runs wait in the middle of their turns, and ends them.
func waiting(ctx context.Context, runner *agent.Runner, count int, measure func() error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var runs, starting sync.WaitGroup
	starting.Add(count)
	for i := range count {
		runs.Go(func() {
			started := sync.OnceFunc(starting.Done)
			defer started()
			h := host{event: func(e agent.Event) {
				if e.Kind == agent.Started {
					started()
				}
			}}
			if _, err := runner.Run(ctx, spec(fmt.Sprintf("idle-%d", i), "wait"), h); err != nil {
				stop(err)
			}
		})
	}
	starting.Wait()
	err := context.Cause(ctx)
	if err == nil {
		err = measure()
	}
	stop(nil)
	runs.Wait()
	return err
}

// footprint is the memory of a process, in bytes, and the number of its goroutines.
type footprint struct {
	heap, rss  float64
	goroutines int
}

// memory returns this process's footprint after returning unused memory.
func memory() (footprint, error) {
	runtime.GC()         // a sync.Pool keeps what it has for one collection
	debug.FreeOSMemory() // collects garbage first
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	rss, err := memoryOf(os.Getpid(), resident)
	return footprint{float64(m.HeapInuse + m.StackInuse), float64(rss), runtime.NumGoroutine()}, err
}
