package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/errand-fleet/errand/bench/door"
)

// stage is what a step plays on: an empty Redis, a front door, a worker with its runs, and the pages that watch them.
type stage struct {
	*bench
	front   *door.Server
	worker  *worker // nil where there are no runs
	watched *tally
	open    []*page
}

// set sets a stage with that many runs. It must be struck.
func (b *bench) set(ctx context.Context, runs int) (_ *stage, err error) {
	if err := b.redis.FlushAll(ctx).Err(); err != nil {
		return nil, fmt.Errorf("empty Redis: %w", err)
	}
	s := &stage{bench: b, watched: new(tally)}
	if s.front, err = door.FrontDoor(b.Bin, b.dir, b.redisURL, b.slack).Serve(ctx); err != nil {
		return nil, err
	}
	if runs > 0 {
		if s.worker, err = b.hire(ctx, runs); err != nil {
			return nil, errors.Join(err, s.front.Stop())
		}
	}
	return s, nil
}

// watch opens the pages, at once, and returns when all of them are followed.
func (s *stage) watch(ctx context.Context) error {
	s.open = make([]*page, s.Pages)
	errs := make([]error, s.Pages)
	var all sync.WaitGroup
	for i := range s.open {
		all.Go(func() {
			s.open[i], errs[i] = openPage(ctx, s.front.Addr, s.worker.ids[i%len(s.worker.ids)], s.watched)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// leave closes the pages.
func (s *stage) leave() (err error) {
	for _, p := range s.open {
		if p != nil {
			err = errors.Join(err, p.close())
		}
	}
	s.open = nil
	return err
}

// write lets the runs write in a mode for a while, until all that they wrote is in all pages. It says what came of
// that.
func (s *stage) write(ctx context.Context, mode string, meanwhile func() error) (seen, int, error) {
	s.watched.reset()
	if err := s.worker.tell(mode); err != nil {
		return seen{}, 0, err
	}
	err := meanwhile()
	wrote, err2 := s.worker.rest()
	if err := errors.Join(err, err2); err != nil {
		return seen{}, wrote, err
	}
	all, err := s.watched.wait(ctx, wrote*s.Pages/s.Runs)
	return all, wrote, err
}

// strike ends everything that is there.
func (s *stage) strike() error {
	err := s.leave()
	if s.worker != nil {
		err = errors.Join(err, s.worker.stop())
	}
	return errors.Join(err, s.front.Stop())
}
