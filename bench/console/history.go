package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/errand-fleet/errand/bench/door"
)

// history measures the cost of opening many pages of tasks with a long history at once, and of reading all of it; every
// tenth browser reads nothing.
func (b *bench) history(ctx context.Context) (err error) {
	s, err := b.set(ctx, b.Runs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.strike()) }()
	if err := s.worker.fill(b.History); err != nil {
		return err
	}
	if err := s.reportFirstBytes(ctx, fmt.Sprintf("the page of a task with %d events", b.History),
		"/tasks/"+s.worker.ids[0]); err != nil {
		return err
	}
	before, err := s.settled(ctx)
	if err != nil {
		return err
	}
	r := &b.report
	most, took, err := s.most(func() error { return s.watch(ctx) })
	if err != nil {
		return err
	}
	r.Note(fmt.Sprintf("until %d pages are open whose tasks had %d events, all at once", b.Pages, b.History),
		took.Seconds(), "%.1f s")
	r.Most("RSS that the front door has then at most, beyond what it had", megabytes(most-before.rss), 256, "%.0f MB")
	if err := s.leave(); err != nil {
		return err
	}
	most, took, err = s.most(func() error { return s.readAll(ctx) })
	if err != nil {
		return err
	}
	r.Note("until all of these events were read, of which every tenth browser takes nothing", took.Seconds(), "%.1f s")
	r.Most("RSS that the front door has then at most, beyond what it had", megabytes(most-before.rss), 256, "%.0f MB")
	return nil
}

// most returns the front door's peak memory during a function, and the function's duration.
func (s *stage) most(do func() error) (bytes float64, took time.Duration, err error) {
	// 5 makes the kernel forget the peak, see proc_pid_clear_refs(5).
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", s.front.Pid()), []byte("5"), 0); err != nil {
		return 0, 0, fmt.Errorf("reset the peak of memory: %w", err)
	}
	begun := time.Now()
	if err := do(); err != nil {
		return 0, 0, err
	}
	took = time.Since(begun)
	bytes, err = peak(s.front.Pid())
	return bytes, took, err
}

// readAll follows the runs from their beginning, with as many browsers as there are pages.
func (s *stage) readAll(ctx context.Context) error {
	s.watched.reset()
	takes := 0
	for i := range s.Pages {
		path := "/api/tasks/" + s.worker.ids[i%len(s.worker.ids)] + "/events"
		if i%10 == 9 {
			conn, _, err := dial(ctx, s.front.Addr)
			if err != nil {
				return err
			}
			defer conn.Close()
			if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", path,
				s.front.Addr, door.Token); err != nil {
				return fmt.Errorf("follow %s: %w", path, err)
			}
			continue
		}
		p, err := follow(ctx, s.front.Addr, path, s.watched)
		if err != nil {
			return err
		}
		s.open, takes = append(s.open, p), takes+1
	}
	_, err := s.watched.wait(ctx, takes*s.History)
	return err
}
