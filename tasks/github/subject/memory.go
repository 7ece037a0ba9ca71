package subject

import (
	"context"
	"log/slog"
	"time"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/thread"
	"github.com/errand-fleet/errand/tasks/intake"
)

// Memory stores the data of each pull request that outlives its tasks: its state and the findings of its reviews.
type Memory struct {
	Store intake.Memory
	Log   *slog.Logger
}

func (m Memory) memo(r thread.Ref) intake.Memo[State] {
	return intake.Memo[State]{Memory: m.Store, Name: "github/" + r.String() + "/state", Log: m.Log}
}

// State reads the state of a pull request; the zero value if it is new.
func (m Memory) State(ctx context.Context, r thread.Ref) (State, error) {
	return m.memo(r).Load(ctx)
}

// ChangeState changes the state of a pull request. change may be called several times if there are concurrent changes.
// If it returns an error, nothing is changed and the error is returned.
func (m Memory) ChangeState(ctx context.Context, r thread.Ref, change func(*State) error) error {
	return m.memo(r).Change(ctx, change)
}

// Answered records that a comment was answered.
func (m Memory) Answered(ctx context.Context, r thread.Ref, p thread.Spot, at time.Time) error {
	return m.ChangeState(ctx, r, func(v *State) error {
		if at.After(v.AnsweredUntil) {
			v.AnsweredUntil, v.LastAnswered = at, p
		}
		return nil
	})
}

// FirstStranger reports whether this is the first person without access on a pull request, and records it.
func (m Memory) FirstStranger(ctx context.Context, r thread.Ref) (first bool, err error) {
	err = m.ChangeState(ctx, r, func(v *State) error {
		first, v.Stranger = !v.Stranger, true
		return nil
	})
	return first, err
}

// Once records a task under key among the automatic work on a pull request. It returns an *tasks.InputError if the task
// must not run.
func (m Memory) Once(ctx context.Context, r thread.Ref, key, task string) error {
	var why string
	err := m.ChangeState(ctx, r, func(p *State) error {
		why = p.once(key, task)
		return nil
	})
	if err != nil || why == "" {
		return err
	}
	return thread.Refuse(why)
}

// OnceUnasked is Once for a task that nobody requested. It allows every requested task.
func (m Memory) OnceUnasked(ctx context.Context, t tasks.Task, o Origin, key string) error {
	if !IsAutomatic(t, o) {
		return nil
	}
	return m.Once(ctx, o.Ref, key, t.ID)
}

// ResetRounds resets the count of automatic work, because a person has requested something.
func (m Memory) ResetRounds(ctx context.Context, r thread.Ref) error {
	return m.ChangeState(ctx, r, func(p *State) error {
		p.ResetRounds()
		return nil
	})
}
