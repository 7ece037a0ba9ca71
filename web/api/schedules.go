package api

import (
	"context"
	"encoding/json"
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
	// PutSchedule makes a schedule, or replaces one that was made so. An [*tasks.InputError] says what is wrong with
	// it.
	PutSchedule(ctx context.Context, d tasks.ScheduleDefinition) (tasks.Schedule, error)
	// DropSchedule removes a schedule that was made by PutSchedule.
	DropSchedule(ctx context.Context, name string) error
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
	if a.Scheduler == nil {
		return noSchedule(tasks.ErrNotFound)
	}
	resumed, err := a.Scheduler.ResumeSchedule(r.Context(), r.PathValue("name"))
	return a.send(w, resumed, noSchedule(err))
}

// maxSchedule bounds the body of a request for a schedule, in bytes.
const maxSchedule = 256 << 10

func (a *API) putSchedule(w http.ResponseWriter, r *http.Request) error {
	if a.Scheduler == nil {
		return noSchedule(tasks.ErrNotFound)
	}
	var d tasks.ScheduleDefinition
	body := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxSchedule))
	body.DisallowUnknownFields()
	if err := body.Decode(&d); err != nil {
		return respond.Error(http.StatusBadRequest, "Invalid body",
			`A schedule looks like {"when": "every day at 07:00", "prompt": "…"}: `+err.Error()+".")
	}
	d.Name = r.PathValue("name")
	made, err := a.Scheduler.PutSchedule(r.Context(), d)
	return a.send(w, made, noSchedule(err))
}

func (a *API) dropSchedule(w http.ResponseWriter, r *http.Request) error {
	err := error(tasks.ErrNotFound)
	if a.Scheduler != nil {
		err = a.Scheduler.DropSchedule(r.Context(), r.PathValue("name"))
	}
	if err = noSchedule(err); err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

// noSchedule says what was not found or is wrong.
func noSchedule(err error) error {
	if errors.Is(err, tasks.ErrNotFound) {
		return respond.Error(http.StatusNotFound, "No such schedule", "There is no schedule with this name.")
	}
	if mistake, ok := errors.AsType[*tasks.InputError](err); ok {
		return respond.Error(http.StatusUnprocessableEntity, "Invalid schedule", mistake.Sentence)
	}
	return err
}
