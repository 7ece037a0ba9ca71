package automation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/intake"
)

// series is a schedule with the memory of what became of its times.
type series struct {
	Automation
	source *Source
	memo   intake.Memo[state]
	log    *slog.Logger
}

func (s *Source) series(a Automation) *series {
	return &series{
		Automation: a, source: s, log: s.cfg.Log.With("schedule", a.Name),
		memo: intake.Memo[state]{Memory: s.cfg.Memory, Name: s.Name() + "/" + a.Name, Log: s.cfg.Log},
	}
}

// lookEvery is the longest time between two looks at a schedule: how late a missed time is found, and how late the end
// of a task is counted.
const lookEvery = time.Minute

// lookLimit bounds one look at all schedules while Redis hangs.
const lookLimit = 20 * time.Second

// run looks at the schedules at their times and every minute, until ctx ends.
func (s *Source) run(ctx context.Context, d *desk.Desk) {
	for {
		s.look(ctx, d)
		now := s.cfg.Now()
		pause := lookEvery
		for _, one := range s.schedules {
			pause = min(pause, one.Times.Next(now).Sub(now))
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// look does what is due for each schedule. What fails is tried again at the next look.
func (s *Source) look(ctx context.Context, d *desk.Desk) {
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	for _, one := range s.schedules {
		if err := one.look(ctx, d); err != nil && ctx.Err() == nil {
			one.log.Warn("look at schedule", "err", err)
		}
	}
}

// state is what the front doors agree on. Each step changes it only if no other front door was faster.
type state struct {
	When     string    `json:"when"`              // the times that Last is about
	Last     time.Time `json:"last"`              // times until then are done with; of Task, unless it was skipped
	Task     string    `json:"task,omitempty"`    // the latest
	Phase    phase     `json:"phase,omitempty"`   // of Task
	Failures int       `json:"failures"`          // in a row
	Problem  string    `json:"problem,omitempty"` // why the latest was refused
	Paused   time.Time `json:"paused,omitzero"`
	Skipped  int       `json:"skipped"` // times that came while a task had not ended
	Kept     time.Time `json:"kept"`    // when the memo was last written, so that it does not expire
}

// phase is how far a task is.
type phase string

const (
	claimed phase = "claimed" // a front door is about to submit it; if it dies, another one does
	open    phase = "open"    // it is submitted and its ending is not counted
	over    phase = ""
)

const (
	// maxFailures in a row pause a schedule.
	maxFailures = 3
	// keepEvery is how often a state is written that does not change. It expires after weeks.
	keepEvery = 24 * time.Hour
)

// errTaken means that another front door was faster.
var errTaken = errors.New("another front door did it")

// look does what is due, unless another front door is faster.
func (s *series) look(ctx context.Context, d *desk.Desk) error {
	err := s.advance(ctx, d)
	if errors.Is(err, errTaken) {
		return nil
	}
	return err
}

// advance submits a claimed task, counts an ended one and claims the latest time that has come.
func (s *series) advance(ctx context.Context, d *desk.Desk) error {
	st, err := s.current(ctx)
	if err != nil {
		return err
	}
	switch st.Phase {
	case claimed:
		st, err = s.submit(ctx, d, st)
	case open:
		st, err = s.count(ctx, d, st)
	}
	if err != nil {
		return err
	}
	for st.Paused.IsZero() {
		at := latest(s.Times, st.Last, s.source.cfg.Now())
		if at.IsZero() {
			return nil
		}
		if st, err = s.claim(ctx, st, at); err != nil {
			return err
		}
		if st.Phase != claimed {
			continue
		}
		if st, err = s.submit(ctx, d, st); err != nil {
			return err
		}
	}
	return nil
}

// current reads the state. A schedule that is new or has other times than before begins now: earlier times are not
// missed ones. So does one with which a front door was done far ahead, whose clock was wrong.
func (s *series) current(ctx context.Context) (state, error) {
	st, err := s.memo.Load(ctx)
	now := s.source.cfg.Now()
	ahead := now.Add(keepEvery)
	if err != nil || st.When == s.When && now.Sub(st.Kept) < keepEvery && !st.Last.After(ahead) {
		return st, err
	}
	return s.change(ctx, func(st *state) error {
		if st.Last.After(ahead) {
			st.Last = now
		}
		if st.When != s.When {
			*st = state{When: s.When, Last: now, Task: st.Task, Phase: st.Phase, Skipped: st.Skipped}
		}
		return nil
	})
}

// change changes the state and returns the new one.
func (s *series) change(ctx context.Context, do func(*state) error) (changed state, err error) {
	err = s.memo.Change(ctx, func(st *state) error {
		if err := do(st); err != nil {
			return err
		}
		st.Kept = s.source.cfg.Now()
		changed = *st
		return nil
	})
	return changed, err
}

// claim gives a time to this front door. A time that comes while the previous task has not ended is skipped.
func (s *series) claim(ctx context.Context, before state, at time.Time) (state, error) {
	st, err := s.change(ctx, func(st *state) error {
		if !st.Last.Equal(before.Last) || st.Phase != before.Phase || !st.Paused.IsZero() {
			return errTaken
		}
		st.Last = at
		if st.Phase != over {
			st.Skipped++
			return nil
		}
		st.Task, st.Phase = tasks.NewID(at, string(Schedule), s.Name), claimed
		return nil
	})
	if err == nil && st.Phase == open {
		s.log.Warn("schedule skipped: its previous task has not ended", "run", st.Task, "at", at)
	}
	return st, err
}

// submit submits the claimed task. It may do so in several front doors: the ID follows from the time.
func (s *series) submit(ctx context.Context, d *desk.Desk, before state) (state, error) {
	thread := s.Name + "/" + tasks.Born(before.Task).UTC().Format("20060102-1504")
	_, err := d.Submit(ctx, s.source.task(s.Automation, before.Task, thread, s.Prompt))
	refused, ok := errors.AsType[*tasks.InputError](err)
	if err != nil && !ok {
		return before, fmt.Errorf("submit scheduled task: %w", err)
	}
	st, err := s.change(ctx, func(st *state) error {
		if st.Task != before.Task || st.Phase != claimed {
			return errTaken
		}
		if refused == nil {
			st.Phase, st.Problem = open, ""
			return nil
		}
		st.Problem = refused.Sentence
		st.end(tasks.Refused, s.source.cfg.Now())
		return nil
	})
	if err == nil && refused != nil {
		s.log.Warn("scheduled task refused", "run", before.Task, "why", refused.Sentence, "failures", st.Failures)
		s.tellPaused(st)
	}
	return st, err
}

// count counts the ending of the task, if it has one. A task that was deleted since counts as neither.
func (s *series) count(ctx context.Context, d *desk.Desk, before state) (state, error) {
	status, err := d.Status(ctx, before.Task)
	switch {
	case errors.Is(err, tasks.ErrNotFound):
		status.Ending = &tasks.Ending{Kind: tasks.Superseded}
	case err != nil:
		return before, err
	case status.Ending == nil:
		return before, nil
	}
	st, err := s.change(ctx, func(st *state) error {
		if st.Task != before.Task || st.Phase != open {
			return errTaken
		}
		st.end(status.Ending.Kind, s.source.cfg.Now())
		return nil
	})
	if err == nil {
		s.tellPaused(st)
	}
	return st, err
}

// end counts the ending of the latest task. What a person stopped is neither a failure nor a success.
func (st *state) end(kind tasks.EndingKind, now time.Time) {
	st.Phase = over
	switch kind.Info().Class {
	case tasks.ClassDone:
		st.Failures = 0
	case tasks.ClassStopped:
	default:
		st.Failures++
	}
	if st.Failures >= maxFailures && st.Paused.IsZero() {
		st.Paused = now
	}
}

func (s *series) tellPaused(st state) {
	if !st.Paused.IsZero() {
		s.log.Error("schedule paused after failures in a row", "failures", st.Failures, "run", st.Task)
	}
}

// resume ends a pause. Times that came during it are not missed ones.
func (s *series) resume(ctx context.Context) (state, error) {
	return s.change(ctx, func(st *state) error {
		if !st.Paused.IsZero() {
			st.Paused, st.Failures, st.Problem, st.Last = time.Time{}, 0, "", s.source.cfg.Now()
		}
		return nil
	})
}

// latest returns the last of some times after one moment and not after another, or the zero time.
func latest(times cron.Schedule, after, until time.Time) (last time.Time) {
	for at := times.Next(after); !at.IsZero() && !at.After(until); at = times.Next(at) {
		last = at
	}
	return last
}
