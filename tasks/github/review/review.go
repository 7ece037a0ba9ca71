// Package review makes the reviews of pull requests: it submits them when a pull request changes, briefs them, posts
// what they have found, and follows what becomes of the findings. Package findings has what needs no network.
package review

import (
	"context"
	"time"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/settings"
	"github.com/errand-fleet/errand/tasks/github/subject"
	"github.com/errand-fleet/errand/tasks/github/thread"
)

// Reviews submits, briefs and reports the reviews of pull requests. It is safe for concurrent use.
type Reviews struct {
	api      thread.Client
	gate     *subject.Gate
	settings *settings.Reader
	memory   memory
	quiet    time.Duration
	explain  func(ctx context.Context, t tasks.Task, o subject.Origin, e tasks.Ending) error
}

// Config is what Reviews need.
type Config struct {
	API      thread.Client
	Gate     *subject.Gate
	Settings *settings.Reader
	Memory   subject.Memory
	Quiet    time.Duration // from a push to its review, unless another push follows

	// Explain answers the comment that requested a review which was refused: the check of a commit is not where its
	// author looks.
	Explain func(ctx context.Context, t tasks.Task, o subject.Origin, e tasks.Ending) error
}

// New returns Reviews.
func New(c Config) *Reviews {
	return &Reviews{
		api: c.API, gate: c.Gate, settings: c.Settings, memory: memory{c.Memory}, quiet: c.Quiet,
		explain: c.Explain,
	}
}
