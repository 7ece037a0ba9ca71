package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/errand-fleet/errand/bench/door"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/store/objects"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/queue"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/tasks/taskstest"
)

// kept measures what Redis keeps of typical tasks in each stage of their lives, with a shared object store. There are
// no workers: it does what they do to the tasks.
func (b *bench) kept(ctx context.Context, dir string) error {
	shared, err := objects.OpenDir(filepath.Join(dir, "objects"), true)
	if err != nil {
		return err
	}
	s, err := store.New(store.Config{Redis: b.redis.Client, Objects: shared, ClaimTTL: time.Hour})
	if err != nil {
		return errors.Join(err, shared.Close())
	}
	queue := queue.New(s, b.redis.Client, time.Hour)
	typical := taskstest.Typical{Store: s, Desk: desk.New(s, queue, rights.Policy{}, nil)}
	ids, claims := make([]string, b.Kept), make([]*store.Claim, b.Kept)
	m := meter{redis: b.redis, n: b.Kept}
	_, m.err = typical.Wait(ctx) // so that Redis has the scripts, and the others wait for a task
	m.read(ctx)
	waiting := m.stage(ctx, func(i int) (err error) { ids[i], err = typical.Wait(ctx); return err })
	live := m.stage(ctx, func(i int) (err error) { claims[i], err = typical.Run(ctx, ids[i]); return err })
	finished := m.stage(ctx, func(i int) error { return typical.Finish(ctx, claims[i]) })
	m.stage(ctx, func(i int) error { return typical.End(ctx, claims[i]) })
	m.remove(ctx, "events:*") // as ten minutes later
	all := m.read(ctx)
	m.remove(ctx, "topic:*", "thread:*", "session:*")
	ended := m.read(ctx)

	r := &b.report
	r.Most("for one of typical size, KB", waiting, 4, "%.1f")
	r.Most("for a live one in the middle of its run", live, 60, "%.1f")
	r.Most("for a live one at the end of its run", finished, 60, "%.1f")
	r.Note("for an ended one, with its events archived", ended, "%.1f")
	r.Note("for a thread without live tasks", all-ended, "%.1f")
	return errors.Join(m.err, shared.Close())
}

// meter measures the memory of n tasks, until the first error.
type meter struct {
	redis *door.Redis
	n     int
	empty int64 // bytes before the tasks
	err   error
}

// stage does something to each task, and returns what a task then takes.
func (m *meter) stage(ctx context.Context, do func(i int) error) float64 {
	for i := 0; i < m.n && m.err == nil; i++ {
		m.err = do(i)
	}
	return m.read(ctx)
}

// read returns what a task takes, in KB. The first call is before there are tasks.
func (m *meter) read(ctx context.Context) float64 {
	if m.err != nil {
		return 0
	}
	u, err := m.redis.Usage(ctx)
	if m.empty == 0 {
		m.empty = u.Memory
	}
	m.err = err
	return float64(u.Memory-m.empty) / float64(m.n) / 1024
}

// remove deletes the keys of some patterns.
func (m *meter) remove(ctx context.Context, patterns ...string) {
	for _, p := range patterns {
		if m.err != nil {
			return
		}
		keys, err := m.redis.Client.Keys(ctx, "errand:"+p).Result()
		if err == nil {
			err = m.redis.Client.Del(ctx, keys...).Err()
		}
		if err != nil {
			m.err = fmt.Errorf("remove %s: %w", p, err)
		}
	}
}
