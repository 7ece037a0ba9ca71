package github

import (
	"context"

	"github.com/errand-fleet/errand/tasks/github/subject"
)

// pause stops automatic work.
func (i *interpreter) pause(ctx context.Context, h remarkEvent) (string, bool, error) {
	return "", true, i.memory.ChangeState(ctx, h.Ref, func(p *subject.State) error {
		if p.RecordCommandTime(h.At) {
			p.Paused, p.PausedBy = true, h.Author
		}
		return nil
	})
}

// resume ends a pause, whether a person or a limit caused it.
func (i *interpreter) resume(ctx context.Context, h remarkEvent) (string, bool, error) {
	return "", true, i.memory.ChangeState(ctx, h.Ref, func(p *subject.State) error {
		if p.RecordCommandTime(h.At) {
			p.Paused, p.PausedBy, p.Reviews = false, "", 0
			p.ResetRounds()
		}
		return nil
	})
}
