package github

import (
	"context"

	"github.com/errand-fleet/errand/tasks/github/subject"
)

// stopAll stops the tasks of a pull request or an issue that were requested before this comment, and drops a plan.
func (i *interpreter) stopAll(ctx context.Context, h remarkEvent) (note string, ok bool, err error) {
	// First: a request that comes late looks for it.
	err = i.memory.ChangeState(ctx, h.Ref, func(p *subject.State) error {
		p.Stopped = max(p.Stopped, h.task())
		return nil
	})
	if err != nil {
		return "", false, err
	}
	reply, err := i.command(h).Stop(ctx, h.threads()...)
	note, ok = commandNote(reply)
	if err == nil && h.OnIssue {
		var dropped bool
		if dropped, err = i.memory.DropPlan(ctx, h.Ref, h.At); dropped {
			note, ok = "", true
		}
	}
	return note, ok, err
}
