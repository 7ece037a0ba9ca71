package web

import (
	"context"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// sight is the fleet as Redis knows it at a moment.
type sight struct {
	workers []store.Worker
	queues  []tasks.Depth
	spent   float64 // today, in US dollars
	counts  store.Counts

	credentials []store.Credential // that are in use and do not start freely

	// What only look sees.
	findings []store.Finding
	tasks    tally
}

// tally counts the tasks that have not ended.
type tally struct {
	Running int `json:"running"`
	Waiting int `json:"waiting"`
	Held    int `json:"held"` // of those that wait: not before a certain time
}

// glance sees what every page of tasks shows. It costs the same however many there are.
func (s *sight) glance(ctx context.Context, c Config) (err error) {
	if s.workers, err = c.Store.Workers(ctx); err != nil {
		return err
	}
	if s.queues, err = c.Desk.Depths(ctx); err != nil {
		return err
	}
	credentials, err := c.Store.Credentials(ctx)
	if err != nil {
		return err
	}
	s.credentials = store.InUse(credentials, s.workers)
	if s.counts, err = c.Store.Counts(ctx); err != nil {
		return err
	}
	s.spent, err = c.Store.Spent(ctx, store.Fleet)
	return err
}

// look sees all there is to see.
func (s *sight) look(ctx context.Context, c Config, now time.Time) (err error) {
	if err = s.glance(ctx, c); err != nil {
		return err
	}
	if s.findings, err = c.Store.Diagnose(ctx); err != nil {
		return err
	}
	live, err := c.Store.Live(ctx)
	s.tasks = tally{Running: s.counts.Running, Waiting: s.counts.Waiting}
	for _, task := range live {
		if task.State == store.Waiting && task.At.After(now) {
			s.tasks.Held++
		}
	}
	return err
}
