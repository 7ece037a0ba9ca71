package rights

import (
	"slices"
	"testing"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/policy"
)

// The wishes of a task are those of its request, its channel, its repositories and the fleet; the model of a repository
// depends on the kind of the task.
func TestSettle(t *testing.T) {
	t.Parallel()
	p := Policy{
		Fleet:    policy.Wish{Model: "sonnet", Instructions: "fleet"},
		Channels: map[string]policy.Wish{"C1": {Effort: "low", Instructions: "channel"}},
		Choices:  Choices{Models: []string{"opus", "haiku"}},
		Repository: func(name string) (Repository, bool) {
			r := Repository{Instructions: "text of " + name}
			if name == "acme/api" {
				r.Environment.Models = map[string]string{"review": "fable"}
			}
			return r, true
		},
	}
	nothing := Repository{}.Environment.RunChoice
	own := nothing
	own.Model, own.Models, own.Effort = "haiku", map[string]string{"fix": "opus", "plan": "x"}, "high"
	for name, c := range map[string]struct {
		task          tasks.Task
		model, effort string
	}{
		"a request":         {tasks.Task{Repo: "acme/api", Options: tasks.Options{Model: "opus", Effort: "max"}}, "opus", "max"},
		"the repository":    {tasks.Task{Repo: "acme/api"}, "haiku", "high"},
		"a kind":            {tasks.Task{Repo: "acme/api", Kind: "fix"}, "opus", "high"},
		"a kind by others":  {tasks.Task{Repo: "acme/api", Kind: "review", Channel: "C1"}, "fable", "low"},
		"a kind not listed": {tasks.Task{Repo: "acme/api", Kind: "plan"}, "sonnet", "high"},
		"a second one":      {tasks.Task{Repo: "acme/web", Also: []string{"acme/api"}, Kind: "review"}, "haiku", "high"},
	} {
		s := p.Settle(c.task, own)
		if s.Value("model") != c.model || s.Value("effort") != c.effort || (len(s.Notes) > 0) != (c.task.Kind == "plan") {
			t.Errorf("%s: %+v", name, s)
		}
	}
	s := p.Settle(tasks.Task{Repo: "acme/api", Also: []string{"acme/web"}, Channel: "C1"}, own)
	after := []policy.Text{
		{For: "repository acme/api", Text: "text of acme/api"},
		{For: "repository acme/web", Text: "text of acme/web"},
		{For: "channel C1", Text: "channel"},
	}
	if !slices.Equal(s.Before, []policy.Text{{For: "the fleet", Text: "fleet"}}) || !slices.Equal(s.After, after) {
		t.Errorf("%+v", s)
	}
	own.Directory = "own"
	if s := p.Settle(tasks.Task{Repo: "acme/api"}, own); s.Setting("directory") != (policy.Setting{
		Name: "directory", Value: "own", Of: ".github/errand.yml",
	}) {
		t.Errorf("directory: %+v", s)
	}
	named := tasks.Task{Repo: "acme/api", Options: tasks.Options{Directory: "named"}}
	if s := p.Settle(named, own); s.Value("directory") != "own" {
		t.Errorf("directory beside that of a request: %+v", s)
	}
	if s := p.Settle(tasks.Task{}, nothing); s.Value("model") != "sonnet" || len(s.After) > 0 {
		t.Errorf("without a repository: %+v", s)
	}
}
