package worker

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/environment"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/tasks/rights"
)

// A run gets the model, the effort and the texts that count for it, in each profile and place; its ending says whose they
// were, and the outlook says it in advance.
func TestSettings(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	r.declare("main", "model: fable\nmodels: {review: opus, fix: nothing}\neffort: high\n")
	r.policy.Fleet = policy.Wish{Model: "sonnet", Instructions: "FLEET"}
	r.policy.Channels = map[string]policy.Wish{"C1": {Model: "haiku", Instructions: "CHANNEL"}}
	r.policy.Choices.Models = []string{"opus", "fable"}
	r.policy.Plugins = []agent.Instructions{agent.TextInstructions("house", "x", "PLUGIN")}
	r.policy.Repository = func(string) (rights.Repository, bool) {
		return rights.Repository{
			Instructions: "REPOSITORY",
			Environment:  environment.Declaration{RunChoice: environment.RunChoice{Effort: "low"}},
		}, true
	}
	r.agent.do = nil
	r.worker(r.disk(t.TempDir()))
	for name, c := range map[string]struct {
		change func(*tasks.Task)
		want   []policy.Setting
		texts  string
		notice bool
	}{
		"a repository": {
			func(*tasks.Task) {},
			[]policy.Setting{{Name: "model", Value: "fable", Of: environment.File}, {Name: "effort", Value: "low", Of: "repository acme/api"}},
			"PLUGIN FLEET REPOSITORY", false,
		},
		"a review that only reads": {
			func(t *tasks.Task) { t.Kind, t.Profile = "review", agent.Read },
			[]policy.Setting{{Name: "model", Value: "opus", Of: environment.File}, {Name: "effort", Value: "low", Of: "repository acme/api"}},
			"PLUGIN FLEET REPOSITORY", false,
		},
		"a model that is not offered": {
			func(t *tasks.Task) { t.Kind, t.Profile = "fix", agent.Untrusted },
			[]policy.Setting{{Name: "model", Value: "sonnet", Of: "the fleet"}, {Name: "effort", Value: "low", Of: "repository acme/api"}},
			"PLUGIN FLEET REPOSITORY", true,
		},
		"a channel": {
			func(t *tasks.Task) { t.Channel = "C1" },
			[]policy.Setting{{Name: "model", Value: "haiku", Of: "channel C1"}, {Name: "effort", Value: "low", Of: "repository acme/api"}},
			"PLUGIN FLEET REPOSITORY CHANNEL", false,
		},
		"no repository": {
			func(t *tasks.Task) { t.Repo, t.Options.Effort = "", "max" },
			[]policy.Setting{{Name: "model", Value: "sonnet", Of: "the fleet"}, {Name: "effort", Value: "max", Of: "the request"}},
			"PLUGIN FLEET", false,
		},
	} {
		task := r.repoTask(name)
		c.change(&task)
		id := r.submit(task)
		e, spec := r.ending(id), agent.Spec{}
		for _, one := range r.agent.specs() {
			if one.ID == id {
				spec = one
			}
		}
		if e.Kind != tasks.Answered || !slices.Equal(e.Settings, c.want) {
			t.Errorf("%s: ending = %+v", name, e)
		}
		if spec.Model != c.want[0].Value || spec.Effort != c.want[1].Value ||
			!slices.Contains(spec.Header, "model "+c.want[0].Value+" of "+c.want[0].Of) {
			t.Errorf("%s: ran with %q, %q, %q", name, spec.Model, spec.Effort, spec.Header)
		}
		var texts []string
		for _, i := range spec.Instructions {
			for _, one := range i.Texts {
				texts = append(texts, one.Text)
			}
		}
		if got := strings.Join(texts, " "); got != c.texts {
			t.Errorf("%s: told %s", name, got)
		}
		said := strings.Join(r.events(id, agent.Notice), "\n")
		if want := fmt.Sprintf("Settings: model %s of %s, effort %s of %s", c.want[0].Value, c.want[0].Of,
			c.want[1].Value, c.want[1].Of); !strings.Contains(said, want) {
			t.Errorf("%s: its page says %s, want %s", name, said, want)
		}
		if strings.Contains(said, "model nothing of .github/errand.yml") != c.notice {
			t.Errorf("%s: followers see %s", name, said)
		}
	}
	r.foresees("model: fable of .github/errand.yml; fix: sonnet of the fleet; review: opus of .github/errand.yml; "+
		"in C1: haiku of channel C1\n", "effort: low of repository acme/api\n",
		"instructions of the operator: for the fleet; for repository acme/api; in C1: for channel C1\n",
		"plugin house: x\n", "warning The model nothing of .github/errand.yml is not")
}
