// Package schedule is the source of tasks that errand starts by itself at set times.
//
// It promises that a time becomes at most one task, however many front doors there are; that times which passed while
// no front door ran become one task together; that a schedule starts no task while its previous one has not ended; and
// that it pauses after three tasks in a row that failed, until an operator resumes it. It does not promise the second:
// a front door looks at a schedule at its times and every minute.
//
// Schedules are in errand.yaml, or people make them through the API; all front doors know those within a minute.
// Answers are posted to a channel if the schedule names one. A Source may be used from any goroutine; Listen is called
// once.
package schedule

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/timetable"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/intake"
)

// Schedule is one series of tasks. Each task has its own thread, and so its own branch and pull request.
type Schedule = tasks.ScheduleDefinition

// Lists keeps what people made until they remove it.
type Lists interface {
	List(ctx context.Context, list string) (map[string]string, error)
	Save(ctx context.Context, list, name string, body json.RawMessage) error
	// Remove reports whether the list had an entry with the name.
	Remove(ctx context.Context, list, name string) (bool, error)
}

// Config is what the source needs. Memory and Lists are required.
type Config struct {
	Schedules []Schedule    // of errand.yaml
	Memory    intake.Memory // where the front doors agree
	Lists     Lists
	// applies the policy to a task of a new schedule; nil: all are allowed
	Check func(tasks.Task) (tasks.Task, error)
	// Permit returns the profile that a task of a new schedule may have now, by the rights of who makes it; nil: its
	// own.
	Permit  func(context.Context, tasks.Task) (agent.Profile, error)
	Results intake.Results   // where the channels of schedules are
	Now     func() time.Time // nil: time.Now
	Log     *slog.Logger     // nil: discard
}

// Source starts the tasks. Make it with New.
type Source struct {
	cfg   Config
	fixed []*series     // of errand.yaml
	made  chan struct{} // holds one token when this front door has stored a schedule
	told  sync.Map      // the entries, by name, that the log says to be of no use
	now   func() time.Time
	log   *slog.Logger
}

var _ tasks.Source = (*Source)(nil)

const sourceName = "schedule"

// New makes the source. The error is about the times of a schedule.
func New(cfg Config) (*Source, error) {
	s := &Source{cfg: cfg, made: make(chan struct{}, 1), now: cfg.Now, log: cfg.Log}
	if s.now == nil {
		s.now = time.Now
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	for _, one := range cfg.Schedules {
		made, err := s.series(one)
		if err != nil {
			return nil, &tasks.InputError{Sentence: "The schedule " + one.Name + " " + err.Error() + "."}
		}
		s.fixed = append(s.fixed, made)
	}
	return s, nil
}

func (s *Source) series(one Schedule) (*series, error) {
	when, err := timetable.Parse(one.When)
	if err != nil {
		return nil, err
	}
	return &series{
		Schedule: one, table: when, now: s.now, log: s.log.With("schedule", one.Name),
		memo: intake.Memo[state]{Memory: s.cfg.Memory, Name: sourceName + "/" + one.Name, Log: s.log},
	}, nil
}

// Name is the prefix of the threads and the word in the IDs of the tasks that come from here.
func (s *Source) Name() string { return sourceName }

// lookEvery is the longest time between two looks at a schedule: how late a missed time is found, and how late the end
// of a task is counted.
const lookEvery = time.Minute

// lookLimit bounds one look at all schedules while Redis hangs.
const lookLimit = 20 * time.Second

// Listen registers no routes. It starts a goroutine that looks at the schedules until ctx ends.
func (s *Source) Listen(ctx context.Context, _ *http.ServeMux, d *tasks.Desk) error {
	go s.run(ctx, d)
	return nil
}

func (s *Source) run(ctx context.Context, d *tasks.Desk) {
	for {
		all := s.look(ctx, d)
		now := s.now()
		pause := lookEvery
		for _, one := range all {
			pause = min(pause, one.table.Next(now).Sub(now))
		}
		select {
		case <-ctx.Done():
			return
		case <-s.made:
		case <-time.After(pause):
		}
	}
}

// look does what is due for each schedule, and returns the schedules. What fails is tried again at the next look.
func (s *Source) look(ctx context.Context, d *tasks.Desk) []*series {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	all, err := s.all(ctx)
	if err != nil && ctx.Err() == nil {
		s.log.Warn("read schedules", "err", err)
	}
	for _, one := range all {
		if err := one.look(ctx, d); err != nil && ctx.Err() == nil {
			one.log.Warn("look at schedule", "err", err)
		}
	}
	return all
}

// system tells the agent that it is alone.
const system = "errand started you by a schedule. Nobody reads along or answers questions: decide, and state your " +
	"assumptions. Begin your answer with the result in one sentence. Answer in Markdown."

// Brief passes on the words of the operator as they are.
func (s *Source) Brief(_ context.Context, t tasks.Task, _ string) (tasks.Brief, error) {
	return tasks.Brief{Prompt: agent.Message{Text: t.Prompt}, System: system, Keep: true}, nil
}

// Open returns a report that posts the ending to the channel of the schedule, if it has one.
func (s *Source) Open(_ context.Context, t tasks.Task) (tasks.Report, error) {
	return s.cfg.Results.Open(t)
}
