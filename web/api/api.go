// Package api serves the JSON API: tasks, their events and logs, costs and health. openapi.yaml describes it.
//
// Errors are problem documents. A task's origin is never sent. Event streams end when the API's context ends, and when
// a client stops reading. Handlers may be used from any number of goroutines; authentication is the caller's.
package api

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/errand-fleet/errand/internal/sse"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/capacity"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/web/auth"
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
	Audit     *auth.Audit
	Tokens    *auth.Tokens
	Examine   func(context.Context) []store.Finding // checks the services of the sources; nil if there are none
	Scheduler Scheduler                             // nil: there are no schedules
	Inbox     Inbox                                 // nil: there are none
	Heartbeat time.Duration                         // between two comments on a silent stream
	Life      context.Context                       // event streams end with it
}

// send sends a value as JSON, unless there is an error.
func (a *API) send(w http.ResponseWriter, v any, err error) error {
	if err != nil {
		return err
	}
	return a.Out.JSON(w, http.StatusOK, v)
}

func (a *API) list(w http.ResponseWriter, r *http.Request) error {
	l, _, err := a.View.List(r.Context(), r.URL.Query())
	return a.send(w, l, err)
}

// task returns a handler that answers with the task that do returns.
func (a *API) task(status int, do func(*http.Request) (tasks.Status, error)) respond.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		s, err := do(r)
		if err != nil {
			return err
		}
		t, err := a.View.Whole(r.Context(), s)
		if err != nil {
			return err
		}
		return a.Out.JSON(w, status, t)
	}
}

// take lets the visitor take over the task in the path.
func (a *API) take(w http.ResponseWriter, r *http.Request) error {
	t, err := a.View.Take(r)
	return a.send(w, t, err)
}

// halt returns a handler that pauses, resumes, cordons or uncordons what the path names.
func (a *API) halt(do view.HaltFunc) respond.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		h, err := a.View.Halt(r, do)
		return a.send(w, h, err)
	}
}

func (a *API) rebuild(w http.ResponseWriter, r *http.Request) error {
	done, err := a.View.Rebuild(r)
	return a.send(w, done, err)
}

// answer reads {"question": key, "answer": text}. The key may be empty if one question is open.
func (a *API) answer(w http.ResponseWriter, r *http.Request) error {
	var body struct{ Question, Answer string }
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, view.MaxAnswer)).Decode(&body); err != nil {
		return respond.Error(http.StatusBadRequest, "Invalid body",
			`An answer looks like {"answer": "the second one"}.`)
	}
	_, given, err := a.View.Answer(r, body.Question, body.Answer)
	return a.send(w, given, err)
}

// diff sends what a task's run has changed, or the change that it reviews, as a unified diff.
func (a *API) diff(w http.ResponseWriter, r *http.Request) error {
	s, err := a.View.Task(r)
	if err != nil {
		return err
	}
	c, err := a.View.Desk.Changes(r.Context(), cmp.Or(s.Into, s.Task.ID))
	if errors.Is(err, tasks.ErrNotFound) || err == nil && c.Failed != "" {
		return respond.Error(http.StatusNotFound, "No diff", cmp.Or(c.Failed,
			"No changes are stored for this task: it has no clone that it may change, it has reached no checkpoint "+
				"yet, or the changes have expired."))
	}
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/x-diff; charset=utf-8")
	w.Header().Set("Last-Modified", c.At.UTC().Format(http.TimeFormat))
	_, _ = io.WriteString(w, c.Patch()) // the client may be gone
	return nil
}

// agents lists the agents, commands and models that a message can name: in a repository (?repo=), in a local directory
// (?projectPath=), or in neither.
func (a *API) agents(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	o, err := a.View.Desk.Offer(r.Context(), capacity.Where{Repo: q.Get("repo"), Dir: q.Get("projectPath")})
	return a.sendAnswer(w, r, o, err)
}

// outlook says what a run in a repository would get.
func (a *API) outlook(w http.ResponseWriter, r *http.Request) error {
	o, err := desk.FleetOf(a.View.Desk).Outlook(r.Context(), r.URL.Query().Get("repo"))
	if _, ok := errors.AsType[*people.RoleError](err); ok {
		return err
	}
	return a.sendAnswer(w, r, o, err)
}

// sendAnswer sends what a worker answered, or why there is no answer.
func (a *API) sendAnswer(w http.ResponseWriter, r *http.Request, answer any, err error) error {
	if mistake, ok := errors.AsType[*tasks.InputError](err); ok {
		return respond.Error(http.StatusBadRequest, "Invalid place", mistake.Sentence)
	}
	if err != nil {
		return respond.Error(http.StatusServiceUnavailable, "Unavailable",
			a.View.OfferProblem(r.Context(), err))
	}
	return a.Out.JSON(w, http.StatusOK, answer)
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
	if !view.SeesServices(r.Context()) {
		return &people.RoleError{Sentence: "The findings are about all repositories, and your role is not."}
	}
	list := []store.Finding{}
	if a.Examine != nil {
		list = append(list, a.Examine(r.Context())...)
	}
	return a.Out.JSON(w, http.StatusOK, map[string]any{"findings": list})
}

// config reports on the configuration, without secrets.
func (a *API) config(w http.ResponseWriter, r *http.Request) error {
	found, err := a.View.Configured(r.Context())
	return a.send(w, found, err)
}

func (a *API) describe(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(description) // the client may be gone
	return nil
}

// costRows is how many rows the JSON has at most. The CSV file has all.
const costRows = 5000

// Costs is the response of GET /api/costs.
type Costs struct {
	From string           `json:"from"` // first and last day, UTC
	To   string           `json:"to"`
	By   []desk.CostGroup `json:"by"`
	desk.Costs
}

func (a *API) costs(w http.ResponseWriter, r *http.Request) error {
	limit, format := costRows, r.URL.Query().Get("format")
	switch format {
	case "", "json":
	case "csv":
		limit = 0
	default:
		return respond.BadQuery("format must be json or csv.")
	}
	found, q, err := a.View.Costs(r.Context(), r.URL.Query(), limit)
	if err != nil {
		return err
	}
	c := Costs{q.First.Format(time.DateOnly), q.Last.Format(time.DateOnly), q.By, found}
	if format == "csv" {
		writeCSV(w, c)
		return nil
	}
	return a.Out.JSON(w, http.StatusOK, c)
}

// Findings is the response of GET /api/findings.
type Findings struct {
	Repository string             `json:"repository"`
	Kinds      []tasks.Acceptance `json:"kinds"`
}

func (a *API) findings(w http.ResponseWriter, r *http.Request) error {
	repo := r.URL.Query().Get("repository")
	kinds, err := a.View.Acceptance(r.Context(), repo)
	return a.send(w, Findings{repo, kinds}, err)
}

// writeCSV sends costs as a file: a column for each group, then the sums. Names of a row of other runs are "(other)".
func writeCSV(w http.ResponseWriter, c Costs) {
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="costs-`+c.From+`-to-`+c.To+`.csv"`)
	out := csv.NewWriter(w)
	_ = out.Write(append(view.Strings(c.By), // the client may be gone, here and below
		"cost_usd", "runs", "input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"))
	for _, row := range c.Rows {
		var line []string
		for _, group := range c.By {
			name := row.Name(group)
			if row.Other && group != desk.ByDay {
				name = "(other)"
			}
			line = append(line, escapeFormula(name))
		}
		line = append(line, strconv.FormatFloat(row.USD, 'f', -1, 64))
		for _, n := range []int64{
			row.Runs, row.Usage.Input, row.Usage.Output, row.Usage.CacheRead, row.Usage.CacheCreation,
		} {
			line = append(line, strconv.FormatInt(n, 10))
		}
		_ = out.Write(line)
	}
	out.Flush()
}

// Characters that a spreadsheet may take for the beginning of a formula, in either width, and for the end of a cell:
// where the comma is the decimal point, a semicolon ends a cell, even in quotes (owasp.org, CSV Injection).
const (
	formulas = "=+-@＝＋－＠"
	cellEnds = ";\t\r\n"
)

// escapeFormula returns a name that no spreadsheet takes for a formula.
func escapeFormula(name string) string {
	name = strings.Map(func(r rune) rune {
		if strings.ContainsRune(cellEnds, r) {
			return ' '
		}
		return r
	}, name)
	if first, _ := utf8.DecodeRuneInString(strings.TrimSpace(name)); strings.ContainsRune(formulas, first) {
		return "'" + name
	}
	return name
}

// events streams the events of a run: one message per event, with its ID, and "end" with the task when it has ended. A
// stream that ends without "end" was interrupted; browsers reconnect by themselves.
func (a *API) events(w http.ResponseWriter, r *http.Request) error {
	// The header is newer than the query: a browser that reconnects requests the same URL again.
	after := cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("after"))
	if !store.ValidEventID(after) {
		return respond.BadQuery("after must be the ID of an event, such as 1700000000000-0.")
	}
	id, err := a.exists(r)
	if err != nil {
		return err
	}
	out := sse.New(w)
	if r.Method == http.MethodHead {
		return nil
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(a.Life, cancel)()
	defer out.KeepAlive(a.Heartbeat, cancel)()
	a.follow(ctx, out, id, after)
	return nil
}

// exists returns the ID of the path's task. Its status is dropped here, so that a stream of hours does not keep it in
// memory.
func (a *API) exists(r *http.Request) (id string, err error) {
	s, err := a.View.Task(r)
	return s.Task.ID, err
}

// follow writes a task's events until the task has ended, the client is gone or the store cannot be read. It runs on
// the request's goroutine and sends events as the worker stored them, without decoding: there may be many streams, and
// their memory is mostly stacks.
func (a *API) follow(ctx context.Context, out *sse.Stream, id, after string) {
	for e, err := range a.View.Store.Events.Follow(ctx, id, after) {
		if err != nil {
			if ctx.Err() == nil {
				a.View.Log.Warn("follow task", "run", id, "err", err)
			}
			return
		}
		after = e.ID
		if e.End {
			break
		}
		if out.Send(e.ID, "", e.Data); out.Err() != nil {
			return
		}
	}
	a.sendEnd(ctx, out, id, after)
}

// sendEnd sends how the task ended. It sends nothing if the task is already being retried: the client then reconnects.
func (a *API) sendEnd(ctx context.Context, out *sse.Stream, id, event string) {
	s, err := a.View.Desk.Status(ctx, id)
	if err != nil || s.Ending == nil {
		return
	}
	if t, err := a.View.Whole(ctx, s); err == nil {
		out.Send(event, "end", t)
	}
}
