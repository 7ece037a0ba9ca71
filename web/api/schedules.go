package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/web/internal/respond"
)

// Scheduler starts tasks at set times.
type Scheduler interface {
	// Schedules returns the schedules that the visitor of the context sees.
	Schedules(ctx context.Context) ([]tasks.Schedule, error)
	// ResumeSchedule ends the pause of a schedule. It returns [tasks.ErrNotFound] if the visitor sees none with that
	// name.
	ResumeSchedule(ctx context.Context, name string) (tasks.Schedule, error)
}

// Schedules is the response of GET /api/schedules.
type Schedules struct {
	Schedules []tasks.Schedule `json:"schedules"`
}

func (a *API) schedules(w http.ResponseWriter, r *http.Request) error {
	all := Schedules{[]tasks.Schedule{}}
	var err error
	if a.Scheduler != nil {
		all.Schedules, err = a.Scheduler.Schedules(r.Context())
	}
	return a.send(w, all, err)
}

func (a *API) resumeSchedule(w http.ResponseWriter, r *http.Request) error {
	var resumed tasks.Schedule
	err := error(tasks.ErrNotFound)
	if a.Scheduler != nil {
		resumed, err = a.Scheduler.ResumeSchedule(r.Context(), r.PathValue("name"))
	}
	if errors.Is(err, tasks.ErrNotFound) {
		return respond.Error(http.StatusNotFound, "No such schedule", "There is no schedule with this name.")
	}
	return a.send(w, resumed, err)
}
