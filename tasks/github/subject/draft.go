package subject

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
)

// Draft is a task before it is submitted. Only Submit marshals its origin.
type Draft struct {
	tasks.Task
	About Origin
	Pull  *github.PullRequest // nil for an issue
}

// WithOrigin returns the task with its marshaled origin.
func (t Draft) WithOrigin() (tasks.Task, error) {
	var err error
	if t.Origin, err = json.Marshal(t.About); err != nil {
		return tasks.Task{}, fmt.Errorf("marshal origin: %w", err)
	}
	return t.Task, nil
}

// Submit submits the task to a desk.
func (t Draft) Submit(ctx context.Context, d *desk.Desk) (desk.Receipt, error) {
	whole, err := t.WithOrigin()
	if err != nil {
		return desk.Receipt{}, err
	}
	return d.Submit(ctx, whole)
}

// Submitted returns the response to an event that has become this task.
func Submitted(receipt desk.Receipt, err error) (response string, _ error) {
	if err != nil {
		return "", err
	}
	return "Task " + receipt.ID, nil
}

// Ignored is the reason why an event becomes no task. This is the usual case and not a failure.
type Ignored struct {
	Why   string
	Level slog.Level // of the log line; operators need only the reasons for pull requests
}

// OnlyWatched is the reason why a request in a repository that is only watched is ignored.
const OnlyWatched = "This repository is only watched; nothing is written to it."

// Ignore returns an Ignored whose reason operators may want to know.
func Ignore(why string) Ignored { return Ignored{why, slog.LevelInfo} }

// IgnoreQuietly returns an Ignored of the usual kind, whose reason is logged only for debugging.
func IgnoreQuietly(why string) Ignored { return Ignored{why, slog.LevelDebug} }

func (e Ignored) Error() string { return e.Why }
