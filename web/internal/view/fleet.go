package view

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// Inbound is a source that knows whether its service's events reach this process.
type Inbound interface {
	Name() string
	// Inbound returns the time of the last event, zero before the first, and the error that keeps events from arriving.
	Inbound() (last time.Time, err error)
}

// Fleet is the health of the whole fleet.
type Fleet struct {
	OK      bool          `json:"ok"`
	Problem string        `json:"problem,omitempty"` // why tasks would not run now
	Redis   string        `json:"redis"`             // "ok" or an error
	Tasks   Tally         `json:"tasks"`
	Queues  []tasks.Depth `json:"queues"`
	Spent   float64       `json:"spent_today_usd"` // since midnight, UTC
	Workers []Worker      `json:"workers"`
	Sources []Source      `json:"sources,omitempty"` // of this front door
	Checks  []Check       `json:"checks"`            // of everything but the workers, which have their own

	Project *Project `json:"project,omitempty"` // the local directory in the query

	Findings    []store.Finding    `json:"findings,omitempty"`    // about Redis
	Credentials []store.Credential `json:"credentials,omitempty"` // model credentials that are held, refused or throttled

	notices []store.Finding // about the configuration of this front door
}

// Tally counts the tasks that have not ended.
type Tally struct {
	Running int `json:"running"`
	Waiting int `json:"waiting"`
	Held    int `json:"held"` // waiting tasks that are not due yet
}

// Source is the state of a source's inbound events.
type Source struct {
	Name    string    `json:"name"`
	Last    time.Time `json:"last_event,omitzero"`
	Problem string    `json:"problem,omitempty"` // why no events arrive
}

// Worker is a live worker.
type Worker struct {
	ID       string          `json:"id"`
	Host     string          `json:"host"`
	Version  string          `json:"version"`
	Pid      int             `json:"pid"`
	Slots    int             `json:"slots"`
	Running  int             `json:"running"`
	Memory   int64           `json:"memory_bytes,omitempty"` // available for more runs; 0 if unknown
	Started  time.Time       `json:"started"`
	Seen     time.Time       `json:"seen"`
	Draining bool            `json:"draining"`
	Health   json.RawMessage `json:"health,omitempty"` // of its CLI, as the worker reports it
	Checks   []Check         `json:"checks"`
}

// NewWorkers returns live workers with their checks.
func NewWorkers(live []store.Worker) []Worker {
	list := make([]Worker, 0, len(live))
	for _, w := range live {
		list = append(list, Worker{
			w.ID, w.Host, w.Version, w.Pid, w.Slots, w.Running, w.Memory, w.Started, w.Seen, w.Draining, w.Health, checkWorker(w),
		})
	}
	return list
}

// Fleet reads the health of the fleet.
func (v *Reader) Fleet(ctx context.Context) Fleet {
	f, err := Await(ctx, v.readFleet)
	if err != nil {
		f = Fleet{Redis: err.Error(), Problem: "Redis does not answer", Queues: []tasks.Depth{}, Workers: []Worker{}}
	}
	for _, in := range v.Inbound {
		last, err := in.Inbound()
		s := Source{Name: in.Name(), Last: last}
		if err != nil {
			s.Problem = err.Error()
		}
		f.Sources = append(f.Sources, s)
	}
	f.notices = v.Notices
	f.OK, f.Checks = f.Problem == "", f.check(v.Now())
	return f
}

// readFleet reads what Redis knows.
func (v *Reader) readFleet(ctx context.Context) (Fleet, error) {
	s, err := v.snapshot(ctx)
	if err != nil {
		return Fleet{}, err
	}
	f := Fleet{
		Redis: "ok", Queues: s.Queues, Spent: s.Spent, Workers: NewWorkers(s.Workers), Credentials: s.Credentials,
		Tasks: Tally{Running: s.Counts.Running, Waiting: s.Counts.Waiting},
	}
	if f.Findings, err = v.Store.Doctor.Diagnose(ctx); err != nil {
		return Fleet{}, err
	}
	live, err := v.Store.Live(ctx)
	for _, task := range live {
		if task.State == store.Waiting && task.At.After(v.Now()) {
			f.Tasks.Held++
		}
	}
	f.Problem, _ = s.problem(v.Now())
	for _, found := range f.Findings {
		if found.Severity == store.Fatal {
			f.Problem = found.What
		}
	}
	return f, err
}

// Status returns 503 if a task submitted now would not run, or would fail for want of a credential, and 200 otherwise.
func (f Fleet) Status() int {
	if f.OK {
		return http.StatusOK
	}
	return http.StatusServiceUnavailable
}
