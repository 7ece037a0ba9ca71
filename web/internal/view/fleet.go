package view

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/capacity"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/tasks/queue"
	"github.com/errand-fleet/errand/web/internal/respond"
)

// Inbound tells whether the events of a source's service reach this process.
type Inbound struct {
	Source string
	Last   func() (last time.Time, err error) // as in [tasks.Capabilities]
}

// Fleet is the health of the whole fleet.
type Fleet struct {
	OK      bool                 `json:"ok"`
	Problem string               `json:"problem,omitempty"` // why tasks would not run now
	Redis   string               `json:"redis"`             // "ok" or an error
	Tasks   Tally                `json:"tasks"`
	Queues  []queue.Depth        `json:"queues"`
	Pools   []capacity.PoolState `json:"pools"`           // the default one first
	Spent   float64              `json:"spent_today_usd"` // since midnight, UTC
	Workers []Worker             `json:"workers"`
	Sources []Source             `json:"sources,omitempty"` // of this front door
	Checks  []Check              `json:"checks"`            // of everything but the workers, which have their own

	Project *Project `json:"project,omitempty"` // the local directory in the query

	Findings []store.Finding `json:"findings,omitempty"` // about Redis
	// model credentials that are held, refused or throttled
	Credentials []store.Credential `json:"credentials,omitempty"`

	// of each model credential that has a name or windows
	CredentialUse []capacity.CredentialUse `json:"credential_use,omitempty"`

	remedy     string // if Redis cannot be used
	unposted   store.Unposted
	notices    []store.Finding       // about the configuration of this front door
	cordoned   map[string]store.Halt // without a live worker
	live       []store.LiveRecord
	unreadable int // records of live tasks
	seen       []store.Worker
	unserved   map[string]int // waiting tasks by source, if no worker is set up for it
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
	Pool     string          `json:"pool,omitempty"` // empty: the default one
	Version  string          `json:"version"`
	Pid      int             `json:"pid"`
	Slots    int             `json:"slots"`
	Running  int             `json:"running"`
	Memory   int64           `json:"memory_bytes,omitempty"` // available for more runs; 0 if unknown
	Started  time.Time       `json:"started"`
	Seen     time.Time       `json:"seen"`
	Draining bool            `json:"draining"`
	Cordon   *store.Halt     `json:"cordon,omitempty"` // takes no tasks because of it
	Health   json.RawMessage `json:"health,omitempty"` // of its CLI, as the worker reports it
	Checks   []Check         `json:"checks"`
}

// NewWorkers returns live workers with their checks.
func NewWorkers(live []store.Worker, now time.Time) []Worker {
	list := make([]Worker, 0, len(live))
	var sources []string
	for _, w := range live {
		sources = append(sources, w.Sources...)
	}
	slices.Sort(sources)
	sources = slices.Compact(sources)
	for _, w := range live {
		list = append(list, Worker{
			w.ID, w.Host, w.Pool, w.Version, w.Pid, w.Slots, w.Running, w.Memory, w.Started, w.Seen, w.Draining,
			w.Cordon, w.Health, checkWorker(w, sources),
		})
	}
	return list
}

// Fleet reads the health of the fleet.
func (v *Reader) Fleet(ctx context.Context) Fleet {
	f, err := Await(ctx, v.readFleet)
	if err != nil {
		what, remedy := v.Explain(err)
		f = Fleet{
			Redis: err.Error(), remedy: remedy, Problem: what, Queues: []queue.Depth{}, Pools: []capacity.PoolState{},
			Workers: []Worker{},
		}
	}
	for _, in := range v.Inbound {
		last, err := in.Last()
		s := Source{Name: in.Source, Last: last}
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
		Redis: "ok", Spent: s.Spent, Workers: NewWorkers(s.Workers, v.Now()),
		Credentials: s.Credentials, Tasks: Tally{Running: s.Counts.Running, Waiting: s.Counts.Waiting},
	}
	for i, w := range s.Workers {
		f.Workers[i].Checks = WorstFirst(append(f.Workers[i].Checks, v.differs(w)...))
	}
	if f.Queues, err = v.Desk.Depths(ctx); err != nil {
		return Fleet{}, err
	}
	if f.Findings, err = v.Store.Doctor.Diagnose(ctx); err != nil {
		return Fleet{}, err
	}
	if f.unposted, err = v.Store.Outbox.Backlog(ctx); err != nil {
		return Fleet{}, err
	}
	if f.cordoned, err = v.Store.Cordoned.All(ctx); err != nil {
		return Fleet{}, err
	}
	for _, w := range s.Workers {
		delete(f.cordoned, w.ID)
		delete(f.cordoned, w.Host)
	}
	live, _, err := v.Store.LiveAfter(ctx, "", math.MaxInt32)
	if err != nil {
		return Fleet{}, err
	}
	f.unreadable = len(live)
	live = slices.DeleteFunc(live, func(r store.LiveRecord) bool { return r.Unreadable != "" })
	f.unreadable -= len(live)
	f.live, f.seen = live, s.Workers
	for _, task := range live {
		if task.State == store.Waiting && task.At.After(v.Now()) {
			f.Tasks.Held++
		}
	}
	f.unserved = capacity.Unserved(live, s.Workers)
	f.Pools = desk.FleetOf(v.Desk).Pools(live, s.Workers)
	f.Problem, _ = s.problem(v.Now())
	if f.CredentialUse, err = desk.FleetOf(v.Desk).Credentials(ctx); err != nil {
		return Fleet{}, err
	}
	f.Problem = cmp.Or(f.Problem, allHeld(f.CredentialUse, v.Now()))
	for _, found := range f.Findings {
		if found.Severity == store.Fatal {
			f.Problem = found.What
		}
	}
	return f, nil
}

// ClassTally is the tasks of a class that have not ended.
type ClassTally struct {
	Waiting, Running int
	Longest          time.Duration // since they were asked for, of those that wait for no set time; 0: there are none
}

// soon is how far away the time of a task is that waits for no set time, but is tried again.
const soon = time.Minute

// OfClass counts the tasks of a class that have not ended.
func (f Fleet) OfClass(class string, now time.Time) (u ClassTally) {
	for _, rec := range f.live {
		switch {
		case rec.Class != class:
		case rec.State == store.Running:
			u.Running++
		default:
			u.Waiting++
			asked := slices.MaxFunc([]time.Time{rec.Created, rec.Retried}, time.Time.Compare)
			if !rec.At.After(now.Add(soon)) {
				u.Longest = max(u.Longest, now.Sub(asked))
			}
		}
	}
	return u
}

// Hours reads what ended, and how long tasks waited, in each of the last hours.
func (v *Reader) Hours(ctx context.Context, hours int) ([]store.Hour, error) {
	return Await(ctx, func(ctx context.Context) ([]store.Hour, error) { return v.Store.Tally.Hours(ctx, hours) })
}

// HaltFunc pauses, resumes, cordons or uncordons what has a name.
type HaltFunc = func(f *desk.Fleet, ctx context.Context, name string) (desk.Halted, error)

// Halt calls do with the name in the path of a request.
func (v *Reader) Halt(r *http.Request, do HaltFunc) (desk.Halted, error) {
	return found(do(desk.FleetOf(v.Desk), r.Context(), r.PathValue("name")))
}

// Rebuild makes the next run in the repository of a request's path set up a new environment on every worker.
func (v *Reader) Rebuild(r *http.Request) (store.Rebuild, error) {
	return found(desk.FleetOf(v.Desk).Rebuild(r.Context(), r.PathValue("name")))
}

// found returns status 404 for what a path names wrongly.
func found[T any](v T, err error) (T, error) {
	if mistake, ok := errors.AsType[*tasks.InputError](err); ok {
		err = respond.Error(http.StatusNotFound, "Not found", mistake.Sentence)
	}
	return v, err
}

// Status returns 503 if a task submitted now would not run, or would fail for want of a credential, and 200 otherwise.
func (f Fleet) Status() int {
	if f.OK {
		return http.StatusOK
	}
	return http.StatusServiceUnavailable
}

// probeLimit is how long a page or a probe waits for Redis.
const probeLimit = 2 * time.Second

// Await asks Redis and gives up after two seconds, or when ctx ends. A client of Redis may notice that end only between
// two commands or attempts, so the call that is left ends by the client's own timeouts.
func Await[T any](ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := ask(ctx)
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// Snapshot is the fleet at one moment, as far as every page shows it.
type Snapshot struct {
	Workers     []store.Worker
	Spent       float64 // today, in US dollars
	Counts      store.Counts
	Credentials []store.Credential // credentials in use that are held, refused or throttled
}

// Snapshot reads the fleet. Its cost does not depend on the number of tasks.
func (v *Reader) Snapshot(ctx context.Context) (Snapshot, error) { return Await(ctx, v.snapshot) }

func (v *Reader) snapshot(ctx context.Context) (s Snapshot, err error) {
	if s.Workers, err = v.Store.Workers.List(ctx); err != nil {
		return s, err
	}
	credentials, err := v.Store.Credentials.List(ctx)
	if err != nil {
		return s, err
	}
	s.Credentials = store.InUse(credentials, s.Workers)
	if s.Counts, err = v.Store.Counts(ctx); err != nil {
		return s, err
	}
	if people.VisitorOf(ctx).Has(policy.See) { // it is of all repositories
		s.Spent, err = v.Store.Costs.Spent(ctx, store.Fleet)
	}
	return s, err
}

// Trouble says in sentences why a task submitted now would not run, or would fail, and how to fix it. It returns "" if
// the task would run.
func (s *Snapshot) Trouble(now time.Time) string {
	what, remedy := s.problem(now)
	if what == "" {
		return ""
	}
	return Sentences(what, remedy)
}

// problem returns why a task submitted now would not run, or would fail, and how to fix it.
func (s *Snapshot) problem(now time.Time) (what, remedy string) {
	if what, remedy = capacity.Unable(s.Workers); what != "" {
		return what, remedy
	}
	return credentialProblem(s.Workers, s.Credentials, now), ""
}

// credentialProblem returns why no worker can use its model credential now: each is refused, or held until a time. It
// returns "" if a worker has a usable credential. A worker that does not name its credential may have any of them.
func credentialProblem(workers []store.Worker, credentials []store.Credential, now time.Time) string {
	var unusable []store.Credential
	for _, w := range workers {
		if !capacity.Able(w) {
			continue
		}
		i := slices.IndexFunc(credentials, func(c store.Credential) bool {
			return (w.Credential == "" || w.Credential == c.Name) && (c.Refused != "" || c.Until.After(now))
		})
		if i < 0 {
			return ""
		}
		unusable = append(unusable, credentials[i])
	}
	if len(unusable) == 0 {
		return "" // no worker can run tasks, which tasks.Unable reports
	}
	if i := slices.IndexFunc(unusable, func(c store.Credential) bool { return c.Refused != "" }); i >= 0 {
		return "the model refuses the credential of the workers: " + unusable[i].Refused
	}
	first := slices.MinFunc(unusable, func(a, b store.Credential) int { return a.Until.Compare(b.Until) })
	return "no run starts before " + Time(first.Until) + ": " + first.Why
}

// allHeld returns why no run reaches the model now where the fleet has several credentials and can use none, or "".
func allHeld(all []capacity.CredentialUse, now time.Time) string {
	if len(all) < 2 {
		return "" // credentialProblem knows the only one
	}
	var first time.Time
	for _, c := range all {
		if !c.Until.After(now) {
			return ""
		}
		if first.IsZero() || c.Until.Before(first) {
			first = c.Until
		}
	}
	return "no run reaches the model before " + Time(first) + ": each of its credentials is held"
}

// Sentences joins a problem and its remedy into sentences.
func Sentences(what, remedy string) string {
	text := display.Capital(strings.TrimSuffix(what, ".")) + "."
	if remedy != "" {
		text += " " + display.Capital(strings.TrimSuffix(remedy, ".")) + "."
	}
	return text
}

// OfferProblem explains why a worker did not answer what it offers, and how to fix it.
func (v *Reader) OfferProblem(ctx context.Context, err error) string {
	if cli, ok := errors.AsType[*capacity.CLIError](err); ok {
		return Sentences(cli.Message, cli.Remedy)
	}
	if ctx.Err() != nil { // the viewer has left
		return ""
	}
	seen, unread := v.Snapshot(ctx)
	if unread == nil {
		if what, remedy := capacity.Unable(seen.Workers); what != "" {
			return Sentences(what, remedy)
		}
	}
	v.Log.Warn("ask for agents and commands", "err", err)
	if unread != nil {
		return "Redis does not answer. Try again in a moment."
	}
	return "No worker answered in time. It may still be cloning the repository: try again in a moment."
}

// Project is a local directory that tasks may work in.
type Project struct {
	Valid     bool     `json:"valid"`             // tasks may work there
	HasClaude bool     `json:"hasClaude"`         // it has instructions for the agent: CLAUDE.md or .claude
	Agents    []string `json:"agents"`            // that a message can name
	Commands  []string `json:"commands"`          // that a message can name
	Problem   string   `json:"problem,omitempty"` // why it is not valid, or why that is unknown
}

// Project describes a local directory.
func (v *Reader) Project(ctx context.Context, path string) *Project {
	p := Project{Agents: []string{}, Commands: []string{}}
	o, err := v.Desk.Offer(ctx, capacity.Where{Dir: path})
	if mistake, ok := errors.AsType[*tasks.InputError](err); ok {
		p.Problem = mistake.Sentence
		return &p
	}
	if err != nil {
		p.Problem = v.OfferProblem(ctx, err)
		return &p
	}
	p.Valid, p.HasClaude = true, o.Configured
	for _, a := range o.Agents {
		p.Agents = append(p.Agents, a.Name)
	}
	for _, c := range o.Commands {
		p.Commands = append(p.Commands, c.Name)
	}
	return &p
}
