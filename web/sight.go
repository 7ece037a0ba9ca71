package web

import (
	"context"
	"time"

	"github.com/errand-fleet/errand/store"
)

// sight is the fleet as Redis knows it at a moment.
type sight struct {
	workers  []store.Worker
	findings []store.Finding
	tasks    tally

	credentials []store.Credential
}

// tally counts the tasks that have not ended.
type tally struct {
	Running int `json:"running"`
	Waiting int `json:"waiting"`
	Held    int `json:"held"` // of those that wait: not before a certain time
}

func (s *sight) look(ctx context.Context, from *store.Store, now time.Time) (err error) {
	if s.workers, err = from.Workers(ctx); err != nil {
		return err
	}
	if s.findings, err = from.Diagnose(ctx); err != nil {
		return err
	}
	if s.credentials, err = from.Credentials(ctx); err != nil {
		return err
	}
	live, err := from.Live(ctx)
	for _, task := range live {
		switch {
		case task.State == store.Running:
			s.tasks.Running++
		case task.At.After(now):
			s.tasks.Held++
			fallthrough
		default:
			s.tasks.Waiting++
		}
	}
	return err
}
