package rights

import (
	"cmp"

	"github.com/errand-fleet/errand/environment"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/policy"
)

// The results of Settle.
type (
	// Settled is what counts for a run.
	Settled = policy.Settled
	// Setting is a setting of a run, with whose wish counted.
	Setting = policy.Setting
)

// Settle collects what the request, the operator and the base branch of the main repository want of a run, and returns
// what counts. The directory is the one that is set for the repository, whatever the request wants.
func (p Policy) Settle(t tasks.Task, own environment.RunChoice) Settled {
	w := policy.Wishes{
		Request: policy.Wish{Of: "the request", Model: t.Options.Model, Effort: t.Options.Effort},
		Channel: p.Channels[t.Channel],
		Own: policy.Wish{
			Of: cmp.Or(own.File, environment.File), Model: own.For(t.Kind), Effort: own.Effort,
			Directory: own.Directory,
		},
		Fleet:  p.Fleet,
		Models: p.Choices.Models, Efforts: p.Choices.Efforts,
	}
	w.Channel.Of, w.Fleet.Of = "channel "+t.Channel, "the fleet"
	for _, name := range t.Repositories() {
		repo, _ := p.Allowed(name)
		choice := repo.Environment.RunChoice
		w.Repositories = append(w.Repositories, policy.Wish{
			Of: "repository " + name, Model: choice.For(t.Kind), Effort: choice.Effort, Directory: choice.Directory,
			Instructions: repo.Instructions,
		})
	}
	return policy.Settle(w)
}
