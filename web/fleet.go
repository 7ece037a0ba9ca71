package web

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// fleet is the health of all that takes part.
type fleet struct {
	OK      bool          `json:"ok"`
	Problem string        `json:"problem,omitempty"` // why tasks would not be run now
	Redis   string        `json:"redis"`             // "ok", or what it says
	Tasks   tally         `json:"tasks"`
	Queues  []tasks.Depth `json:"queues"`
	Spent   float64       `json:"spent_today_usd"` // what runs have cost since midnight, UTC
	Workers []worker      `json:"workers"`
	Sources []source      `json:"sources,omitempty"` // of this front door, as far as they can tell
	Checks  []check       `json:"checks"`            // of all but the workers, each of which has its own

	notices []store.Finding // about the configuration of this front door

	Project *project `json:"project,omitempty"` // the local directory that was asked about

	Findings []store.Finding `json:"findings,omitempty"` // about Redis
	// Credentials are those for the model that are held back, or with which runs start one after the other. Tasks then wait, and say so.
	Credentials []store.Credential `json:"credentials,omitempty"`
}

// Inbound is a source that knows whether the events of its service reach this process.
type Inbound interface {
	Name() string
	// Inbound tells when the last event came (zero: none yet), and what keeps events from coming.
	Inbound() (last time.Time, err error)
}

type source struct {
	Name    string    `json:"name"`
	Last    time.Time `json:"last_event,omitzero"`
	Problem string    `json:"problem,omitempty"` // what keeps events from coming
}

// sources are those that can tell. One without events does not keep tasks from being run.
func (h *Handler) sources() (list []source) {
	for _, in := range h.cfg.Inbound {
		last, err := in.Inbound()
		s := source{Name: in.Name(), Last: last}
		if err != nil {
			s.Problem = err.Error()
		}
		list = append(list, s)
	}
	return list
}

type worker struct {
	ID       string          `json:"id"`
	Host     string          `json:"host"`
	Version  string          `json:"version"`
	Pid      int             `json:"pid"`
	Slots    int             `json:"slots"`
	Running  int             `json:"running"`
	Memory   int64           `json:"memory_bytes,omitempty"` // available for further runs, as far as it is known
	Started  time.Time       `json:"started"`
	Seen     time.Time       `json:"seen"`
	Draining bool            `json:"draining"`
	Health   json.RawMessage `json:"health,omitempty"` // of its CLI, as the worker tells it
	Checks   []check         `json:"checks"`
}

// workers are those that live, with what is to be said of them.
func workers(seen []store.Worker) []worker {
	list := make([]worker, 0, len(seen))
	for _, w := range seen {
		list = append(list, worker{
			w.ID, w.Host, w.Version, w.Pid, w.Slots, w.Running, w.Memory, w.Started, w.Seen, w.Draining, w.Health, checkWorker(w),
		})
	}
	return list
}

// fleet asks about everybody.
func (h *Handler) fleet(ctx context.Context) fleet {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	var seen sight
	f := fleet{Redis: "ok", Queues: []tasks.Depth{}, Workers: []worker{}, Sources: h.sources(), notices: h.cfg.Notices}
	if err := soon(ctx, func(ctx context.Context) error { return seen.look(ctx, h.cfg, h.now()) }); err != nil {
		f.Redis, f.Problem = err.Error(), "Redis does not answer"
		f.Checks = f.check(h.now())
		return f // without what was seen: that may still be written to
	}
	f.Tasks, f.Queues, f.Spent, f.Workers = seen.tasks, seen.queues, seen.spent, workers(seen.workers)
	f.Findings, f.Credentials = seen.findings, seen.credentials
	f.Problem, _ = seen.unable(h.now())
	for _, found := range f.Findings {
		if found.Severity == store.Fatal {
			f.Problem = found.What
		}
	}
	f.OK, f.Checks = f.Problem == "", f.check(h.now())
	return f
}

// status is 503 when a task that was submitted now would not be run, or would fail for want of a credential.
func (f fleet) status() int {
	if f.OK {
		return http.StatusOK
	}
	return http.StatusServiceUnavailable
}

func (h *Handler) health(w http.ResponseWriter, r *http.Request) {
	f := h.fleet(r.Context())
	if path := r.URL.Query().Get("projectPath"); path != "" {
		f.Project = h.project(r, path)
	}
	h.json(w, f.status(), f)
}
