// Package schedule is the source of tasks that errand starts by itself at set times.
//
// It promises that a time becomes at most one task, however many front doors there are; that times which passed while
// no front door ran become one task together; that a schedule starts no task while its previous one has not ended; and
// that it pauses after three tasks in a row that failed, until an operator resumes it. It does not promise the second:
// a front door looks at a schedule at its times and every minute.
//
// Answers are posted to a channel if the schedule names one. A Source may be used from any goroutine; Listen is called
// once.
package schedule

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/timetable"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/intake"
)

// Schedule is one series of tasks. Each task has its own thread, and so its own branch and pull request.
type Schedule = tasks.ScheduleDefinition

// Config is what the source needs. Memory is required.
type Config struct {
	Schedules []Schedule
	Memory    intake.Memory    // where the front doors agree
	Results   intake.Results   // where the channels of schedules are
	Now       func() time.Time // nil: time.Now
	Log       *slog.Logger     // nil: discard
}

// Source starts the tasks. Make it with New.
type Source struct {
	cfg Config
	all []*series
	now func() time.Time
}

var _ tasks.Source = (*Source)(nil)

const sourceName = "schedule"

// New makes the source. The error is about the times of a schedule.
func New(cfg Config) (*Source, error) {
	s := &Source{cfg: cfg, now: cfg.Now}
	if s.now == nil {
		s.now = time.Now
	}
	if s.cfg.Log == nil {
		s.cfg.Log = slog.New(slog.DiscardHandler)
	}
	for _, one := range cfg.Schedules {
		made, err := s.series(one)
		if err != nil {
			return nil, &tasks.InputError{Sentence: "The schedule " + one.Name + " " + err.Error() + "."}
		}
		s.all = append(s.all, made)
	}
	return s, nil
}

func (s *Source) series(one Schedule) (*series, error) {
	when, err := timetable.Parse(one.When)
	if err != nil {
		return nil, err
	}
	return &series{
		Schedule: one, table: when, now: s.now, log: s.cfg.Log.With("schedule", one.Name),
		memo: intake.Memo[state]{Memory: s.cfg.Memory, Name: sourceName + "/" + one.Name, Log: s.cfg.Log},
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
		s.look(ctx, d)
		now := s.now()
		pause := lookEvery
		for _, one := range s.all {
			pause = min(pause, one.table.Next(now).Sub(now))
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// look does what is due for each schedule. What fails is tried again at the next look.
func (s *Source) look(ctx context.Context, d *tasks.Desk) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	for _, one := range s.all {
		if err := one.look(ctx, d); err != nil && ctx.Err() == nil {
			one.log.Warn("look at schedule", "err", err)
		}
	}
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
