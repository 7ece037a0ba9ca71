package schedule

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/errand-fleet/errand/internal/timetable"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/intake"
)

// series is a schedule with the memory of what became of its times.
type series struct {
	Schedule
	table timetable.Timetable
	memo  intake.Memo[state]
	now   func() time.Time
	log   *slog.Logger
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

// look does what is due: it submits a claimed task, counts an ended one and claims the latest time that has come.
func (s *series) look(ctx context.Context, d *tasks.Desk) error {
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
	for err == nil && st.Paused.IsZero() {
		at := s.table.Latest(st.Last, s.now())
		if at.IsZero() {
			return nil
		}
		if st, err = s.claim(ctx, st, at); err == nil && st.Phase == claimed {
			st, err = s.submit(ctx, d, st)
		}
	}
	if errors.Is(err, errTaken) {
		return nil
	}
	return err
}

// current reads the state. A schedule that is new or has other times than before begins now: earlier times are not
// missed ones.
func (s *series) current(ctx context.Context) (state, error) {
	st, err := s.memo.Load(ctx)
	now := s.now()
	if err != nil || st.When == s.When && now.Sub(st.Kept) < keepEvery {
		return st, err
	}
	return s.change(ctx, func(st *state) error {
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
		st.Kept = s.now()
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
		st.Task, st.Phase = tasks.NewID(at, sourceName, s.Name), claimed
		return nil
	})
	if err == nil && st.Phase == open {
		s.log.Warn("schedule skipped: its previous task has not ended", "run", st.Task, "at", at)
	}
	return st, err
}

// task returns the task with an ID. Its time is part of the thread's name.
func (s *series) task(id string) tasks.Task {
	return tasks.Task{
		ID: id, Source: sourceName, Kind: sourceName, Class: tasks.Background, Profile: s.Profile,
		Thread: sourceName + "/" + s.Name + "/" + tasks.Born(id).UTC().Format("20060102-1504"),
		Repo:   s.Repo, Ref: s.Branch, Actor: sourceName + ":" + s.Name, Prompt: s.Prompt,
		Options: tasks.Options{MaxUSD: s.MaxUSD}, Origin: intake.ResultsIn(s.Results),
	}
}

// submit submits the claimed task. It may do so in several front doors: the ID follows from the time.
func (s *series) submit(ctx context.Context, d *tasks.Desk, before state) (state, error) {
	_, err := d.Submit(ctx, s.task(before.Task))
	refused, ok := errors.AsType[*tasks.InputError](err)
	if err != nil && !ok {
		return before, fmt.Errorf("submit scheduled task: %w", err)
	}
	st, err := s.change(ctx, func(st *state) error {
		switch {
		case st.Task != before.Task || st.Phase != claimed:
			return errTaken
		case refused == nil:
			st.Phase, st.Problem = open, ""
			return nil
		}
		st.Problem = refused.Sentence
		st.end(tasks.Refused, s.now())
		return nil
	})
	if err == nil && refused != nil {
		s.log.Warn("scheduled task refused", "run", before.Task, "why", refused.Sentence, "failures", st.Failures)
		s.tellPaused(st)
	}
	return st, err
}

// count counts the ending of the task, if it has one. A task that was deleted since counts as neither.
func (s *series) count(ctx context.Context, d *tasks.Desk, before state) (state, error) {
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
		st.end(status.Ending.Kind, s.now())
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
			st.Paused, st.Failures, st.Problem, st.Last = time.Time{}, 0, "", s.now()
		}
		return nil
	})
}
