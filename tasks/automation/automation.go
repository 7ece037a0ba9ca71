// Package automation is the source of tasks that start without a person: at set times, or by a signed request of
// another program.
//
// An [Automation] says when a task starts and what it is. Its tasks have the class background and the rights that
// errand.yaml gives them; limits and budgets count it as a separate person, such as "schedule:nightly".
//
// Of schedules the package promises that a time becomes at most one task, however many front doors there are; that
// times which passed while no front door ran become one task together; that a schedule starts no task while its
// previous one has not ended; and that it pauses after three tasks in a row that failed, until an operator resumes it.
// It does not promise the second: a front door looks at a schedule at its times and every minute.
//
// Of hooks it promises that only holders of a hook's secret start its tasks; that a request whose sender was answered
// becomes a task or is kept for an operator; that requests with one Idempotency-Key become one task for a day, however
// many arrive at once and at which front door; and that what a request contains reaches the agent only as quoted
// material. A hook cannot fill the queue: each has a rate and, like a person, budgets.
//
// Answers are posted to a channel if the automation names one; the console, the command line and the API show them. A
// Source may be used from any goroutine; Listen is called once.
package automation

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/intake"
)

// Automation starts tasks of one kind. Each has its own thread, and so its own branch and pull request.
type Automation struct {
	Name    string // [a-z0-9-]
	Prompt  string // what to do; of a hook a text/template, which makes that from the JSON of a request
	Repo    string // owner/name; empty: none
	Branch  string // to start from; empty: the repository's base
	Profile agent.Profile
	MaxUSD  float64 // of a task; 0: the fleet's limit
	Results string  // Slack channel for the answers; empty: they are not posted

	// Of a schedule.
	When  string // the times as the operator has written them
	Times cron.Schedule

	// Of a hook.
	Secret  string // signs requests; empty: it is not known here, and all are refused
	PerHour int    // requests; 0: defaultPerHour
}

// Kind is what makes the tasks of an automation start. It is the name of their source.
type Kind string

// The kinds of automations.
const (
	Schedule Kind = "schedule"
	Hook     Kind = "hook"
)

// Config is what a source needs. Memory is required, and for hooks also Limiter and Inbox.
type Config struct {
	Automations []Automation   // of the source's kind
	Memory      intake.Memory  // where the front doors agree
	Limiter     intake.Limiter // of the requests to hooks
	Inbox       Inbox          // of the requests to hooks
	Board       intake.Board   // where the channels are; nil: this process leaves posting to another one
	// May reports whether answers about a repository, or about none, may be posted in a channel. Required with Board.
	May func(ctx context.Context, channel, repo string) (bool, error)
	Now func() time.Time // nil: time.Now
	Log *slog.Logger     // nil: discard
}

// Inbox keeps the requests to hooks.
type Inbox interface {
	intake.Inbox
	// Knows reports whether Accept would store nothing new: the event with this ID is stored and was not given up.
	Knows(ctx context.Context, source, id string) (bool, error)
}

// Source starts the tasks of all automations of one kind. Make it with New.
type Source struct {
	cfg       Config
	kind      Kind
	schedules []*series
	hooks     map[string]*endpoint
}

var _ tasks.Source = (*Source)(nil)

// New makes the source for a kind. The error is about the template of a hook.
func New(kind Kind, cfg Config) (*Source, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s := &Source{cfg: cfg, kind: kind, hooks: map[string]*endpoint{}}
	for _, a := range cfg.Automations {
		if kind == Schedule {
			s.schedules = append(s.schedules, s.series(a))
			continue
		}
		e, err := s.endpoint(a)
		if err != nil {
			return nil, err
		}
		s.hooks[a.Name] = e
	}
	return s, nil
}

// Name is the prefix of the threads and the word in the IDs of the tasks that come from here.
func (s *Source) Name() string { return string(s.kind) }

// Listen registers POST /hooks/{name} and what makes the tasks of its requests, or starts a goroutine that looks at the
// schedules until ctx ends.
func (s *Source) Listen(ctx context.Context, mux *http.ServeMux, d *desk.Desk) error {
	if len(s.hooks) > 0 {
		mux.HandleFunc("POST "+Prefix+"{name}", func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, d) })
		s.cfg.Inbox.Handle(s.Name(), func(ctx context.Context, e intake.Event) (string, error) {
			return s.submit(ctx, d, e)
		})
	}
	if len(s.schedules) > 0 {
		go s.run(ctx, d)
	}
	return nil
}
