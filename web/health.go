package web

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/errand-fleet/errand/store"
)

// probeLimit is how long a probe waits for Redis; whoever probes has little patience.
const probeLimit = 2 * time.Second

// livez says that the process serves.
func (h *Handler) livez(w http.ResponseWriter, _ *http.Request) { text(w, http.StatusOK, "ok\n") }

// readyz says whether the process can do its part. Everybody may ask, so the reason names no address.
func (h *Handler) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), probeLimit)
	defer cancel()
	if err := soon(ctx, h.cfg.Store.Ping); err != nil {
		text(w, http.StatusServiceUnavailable, "Redis does not answer.\n")
		return
	}
	if h.cfg.Ready != nil {
		if err := soon(ctx, h.cfg.Ready); err != nil {
			text(w, http.StatusServiceUnavailable, err.Error()+"\n")
			return
		}
	}
	text(w, http.StatusOK, "ok\n")
}

func text(w http.ResponseWriter, status int, s string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, s)
}

// fleet is the health of all that takes part.
type fleet struct {
	OK      bool     `json:"ok"`
	Problem string   `json:"problem,omitempty"` // why tasks would not be run now
	Redis   string   `json:"redis"`             // "ok", or what it says
	Tasks   tally    `json:"tasks"`
	Workers []worker `json:"workers"`
	Sources []source `json:"sources,omitempty"` // of this front door, as far as they can tell

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
	Started  time.Time       `json:"started"`
	Seen     time.Time       `json:"seen"`
	Draining bool            `json:"draining"`
	Health   json.RawMessage `json:"health,omitempty"` // of its CLI, as the worker tells it
}

// able reports whether a worker takes tasks and can run them. One that says nothing about its CLI is taken at its word.
func able(w store.Worker) bool {
	cli := struct {
		OK bool `json:"ok"`
	}{OK: true}
	if len(w.Health) > 0 && json.Unmarshal(w.Health, &cli) != nil {
		return false
	}
	return !w.Draining && cli.OK
}

// health answers 503 when a task that was submitted now would not be run.
func (h *Handler) health(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), probeLimit)
	defer cancel()
	var seen sight
	f := fleet{Redis: "ok", Workers: []worker{}, Sources: h.sources(), Problem: "no worker is alive"}
	if err := soon(ctx, func(ctx context.Context) error { return seen.look(ctx, h.cfg.Store, h.now()) }); err != nil {
		f.Redis, f.Problem = err.Error(), "Redis does not answer"
		h.json(w, http.StatusServiceUnavailable, f)
		return
	}
	f.Tasks, f.Findings, f.Credentials = seen.tasks, seen.findings, seen.credentials
	for _, w := range seen.workers {
		f.Problem = "no worker can run tasks: their health says why"
		f.OK = f.OK || able(w)
		f.Workers = append(f.Workers, worker{w.ID, w.Host, w.Version, w.Pid, w.Slots, w.Running, w.Started, w.Seen, w.Draining, w.Health})
	}
	for _, found := range f.Findings {
		if found.Severity == store.Fatal {
			f.OK, f.Problem = false, found.What
		}
	}
	status := http.StatusServiceUnavailable
	if f.OK {
		status, f.Problem = http.StatusOK, ""
	}
	h.json(w, status, f)
}
