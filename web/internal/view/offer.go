package view

import (
	"context"
	"errors"

	"github.com/errand-fleet/errand/tasks"
)

// OfferProblem explains why a worker did not answer what it offers, and how to fix it.
func (v *Reader) OfferProblem(ctx context.Context, err error) string {
	if cli, ok := errors.AsType[*tasks.CLIError](err); ok {
		return Sentences(cli.Message, cli.Remedy)
	}
	seen, unread := v.Snapshot(ctx)
	if unread == nil {
		if what, remedy := tasks.Unable(seen.Workers); what != "" {
			return Sentences(what, remedy)
		}
	}
	v.Log.Warn("ask for agents and commands", "err", err)
	if unread != nil {
		return "Redis does not answer. Try again in a moment."
	}
	return "No worker answered in time. It may still be cloning the repository: try again in a moment."
}

// Project is a local directory that tasks may work in.
type Project struct {
	Valid     bool     `json:"valid"`             // tasks may work there
	HasClaude bool     `json:"hasClaude"`         // it has instructions for the agent: CLAUDE.md or .claude
	Agents    []string `json:"agents"`            // that a message can name
	Commands  []string `json:"commands"`          // that a message can name
	Problem   string   `json:"problem,omitempty"` // why it is not valid, or why that is unknown
}

// Project describes a local directory.
func (v *Reader) Project(ctx context.Context, path string) *Project {
	p := Project{Agents: []string{}, Commands: []string{}}
	o, err := v.Desk.Offer(ctx, tasks.Where{Dir: path})
	if mistake, ok := errors.AsType[*tasks.InputError](err); ok {
		p.Problem = mistake.Sentence
		return &p
	}
	if err != nil {
		p.Problem = v.OfferProblem(ctx, err)
		return &p
	}
	p.Valid, p.HasClaude = true, o.Configured
	for _, a := range o.Agents {
		p.Agents = append(p.Agents, a.Name)
	}
	for _, c := range o.Commands {
		p.Commands = append(p.Commands, c.Name)
	}
	return &p
}
