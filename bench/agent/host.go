package main

import (
	"context"
	"fmt"

	"github.com/errand-fleet/errand/agent"
)

// host does not interfere with a run. Each function may be nil.
type host struct {
	event func(agent.Event)
	next  func(context.Context) (agent.Message, bool)
	idle  func()
}

func (h host) Event(e agent.Event) {
	if h.event != nil {
		h.event(e)
	}
}

func (host) Permit(context.Context, agent.ToolRequest) agent.Decision { return agent.Decision{} }

func (h host) Next(ctx context.Context) (agent.Message, bool) {
	if h.next != nil {
		return h.next(ctx)
	}
	<-ctx.Done()
	return agent.Message{}, false
}

func (h host) Idle(context.Context) (agent.Message, bool) {
	if h.idle != nil {
		h.idle()
	}
	return agent.Message{}, false
}

// complete runs the fake CLI, which must succeed.
func complete(ctx context.Context, runner *agent.Runner, s agent.Spec, h host) (agent.Result, error) {
	res, err := runner.Run(ctx, s, h)
	switch {
	case err != nil:
		return res, fmt.Errorf("run %s: %w", s.ID, err)
	case res.Error != nil:
		return res, fmt.Errorf("run %s: it failed: %w", s.ID, res.Error)
	case res.Outcome != agent.Done:
		return res, fmt.Errorf("run %s: it ended as %s", s.ID, res.Outcome)
	}
	return res, nil
}
