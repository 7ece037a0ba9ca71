// Package api serves the JSON API: tasks, their events and logs, costs and health. openapi.yaml describes it.
//
// Errors are problem documents. A task's origin is never sent. Event streams end when the API's context ends, and when
// a client stops reading. Handlers may be used from any number of goroutines; authentication is the caller's.
package api

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/web/internal/respond"
	"github.com/errand-fleet/errand/web/internal/view"
	"github.com/errand-fleet/errand/web/logs"
)

// description is the OpenAPI description. Tests compare it with the routes and their responses.
//
//go:embed openapi.yaml
var description []byte

// API is the JSON API.
type API struct {
	View      *view.Reader
	Logs      *logs.Reader
	Out       *respond.Responder
	Examine   func(context.Context) []store.Finding // checks the services of the sources; nil if there are none
	Heartbeat time.Duration                         // between two comments on a silent stream
	Life      context.Context                       // event streams end with it
}

// Route adds the routes of the API.
func (a *API) Route(mux *http.ServeMux) {
	for pattern, handle := range map[string]func(http.ResponseWriter, *http.Request) error{
		"GET /api/tasks":              a.list,
		"GET /api/tasks/{id}":         a.get,
		"GET /api/tasks/{id}/events":  a.events,
		"GET /api/tasks/{id}/log":     a.Logs.Send,
		"POST /api/tasks/{id}/cancel": a.cancel,
		"POST /api/tasks/{id}/retry":  a.retry,
		"POST /api/tasks/{id}/answer": a.answer,
		"GET /api/costs":              a.costs,
		"GET /api/agents":             a.agents,
		"GET /api/health":             a.health,
		"GET /api/health/services":    a.services,
		"GET /api/openapi.yaml":       a.describe,
	} {
		mux.HandleFunc(pattern, a.Out.Handle(handle))
	}
}

func (a *API) list(w http.ResponseWriter, r *http.Request) error {
	l, _, err := a.View.List(r.Context(), r.URL.Query())
	if err != nil {
		return err
	}
	return a.Out.JSON(w, http.StatusOK, l)
}

func (a *API) get(w http.ResponseWriter, r *http.Request) error {
	s, err := a.View.Task(r)
	return a.task(w, http.StatusOK, s, err)
}

func (a *API) cancel(w http.ResponseWriter, r *http.Request) error {
	s, err := a.View.Cancel(r)
	return a.task(w, http.StatusAccepted, s, err)
}

func (a *API) retry(w http.ResponseWriter, r *http.Request) error {
	s, err := a.View.Retry(r)
	return a.task(w, http.StatusAccepted, s, err)
}

// task writes a task, unless err says that there is none.
func (a *API) task(w http.ResponseWriter, status int, s tasks.Status, err error) error {
	if err != nil {
		return err
	}
	return a.Out.JSON(w, status, view.NewTask(s))
}

// answer reads {"question": key, "answer": text}. The key may be empty if one question is open.
func (a *API) answer(w http.ResponseWriter, r *http.Request) error {
	var body struct{ Question, Answer string }
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, view.MaxAnswer)).Decode(&body); err != nil {
		return respond.Error(http.StatusBadRequest, "Invalid body",
			`An answer looks like {"answer": "the second one"}.`)
	}
	_, given, err := a.View.Answer(r, body.Question, body.Answer)
	if err != nil {
		return err
	}
	return a.Out.JSON(w, http.StatusOK, given)
}

// agents lists the agents, commands and models that a message can name: in a repository (?repo=), in a local directory
// (?projectPath=), or in neither.
func (a *API) agents(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	o, err := a.View.Desk.Offer(r.Context(), tasks.Where{Repo: q.Get("repo"), Dir: q.Get("projectPath")})
	if mistake, ok := errors.AsType[*tasks.InputError](err); ok {
		return respond.Error(http.StatusBadRequest, "Invalid place", mistake.Sentence)
	}
	if err != nil {
		return respond.Error(http.StatusServiceUnavailable, "Unavailable",
			a.View.OfferProblem(r.Context(), err))
	}
	return a.Out.JSON(w, http.StatusOK, o)
}

func (a *API) health(w http.ResponseWriter, r *http.Request) error {
	f := a.View.Fleet(r.Context())
	if path := r.URL.Query().Get("projectPath"); path != "" {
		f.Project = a.View.Project(r.Context(), path)
	}
	return a.Out.JSON(w, f.Status(), f)
}

// services checks how the services of the sources are set up. It calls them, so it is not for probes.
func (a *API) services(w http.ResponseWriter, r *http.Request) error {
	list := []store.Finding{}
	if a.Examine != nil {
		list = append(list, a.Examine(r.Context())...)
	}
	return a.Out.JSON(w, http.StatusOK, map[string]any{"findings": list})
}

func (a *API) describe(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(description) // the client may be gone
	return nil
}
