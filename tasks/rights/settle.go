package rights

import (
	"github.com/errand-fleet/errand/environment"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/policy"
)

// Guidance is what the operator wants of all runs, or of those that are asked for in a channel.
type Guidance struct {
	Model, Effort string // empty: others decide
	Instructions  string // for the agent
}

// Settled is what counts for a run.
type Settled = policy.Settled

// Settle collects what the request, the operator and the base branch of the main repository want of a run, and returns
// what counts.
func (p Policy) Settle(t tasks.Task, own environment.ModelChoice) Settled {
	wish := func(of string, g Guidance) policy.Wish {
		return policy.Wish{Of: of, Model: g.Model, Effort: g.Effort, Instructions: g.Instructions}
	}
	w := policy.Wishes{
		Request: policy.Wish{Of: "the request", Model: t.Options.Model, Effort: t.Options.Effort},
		Channel: wish("channel "+t.Channel, p.Channels[t.Channel]),
		Own:     policy.Wish{Of: environment.File, Model: own.For(t.Kind), Effort: own.Effort},
		Fleet:   wish("the fleet", p.Fleet),
		Models:  p.Choices.Models, Efforts: p.Choices.Efforts,
	}
	for _, name := range t.Repositories() {
		repo, _ := p.Allowed(name)
		choice := repo.Environment.ModelChoice
		w.Repositories = append(w.Repositories, policy.Wish{
			Of: "repository " + name, Model: choice.For(t.Kind), Effort: choice.Effort,
			Instructions: repo.Instructions,
		})
	}
	return policy.Settle(w)
}
