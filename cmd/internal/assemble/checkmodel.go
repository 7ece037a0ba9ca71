package assemble

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/doctor"
	"github.com/errand-fleet/errand/tasks/desk"
)

// CheckCredentials asks the model with each credential of a runner.
func CheckCredentials(ctx context.Context, r *agent.Runner, model string) (found []doctor.Finding) {
	list := agent.CheckModel(ctx, r, model)
	useless := !slices.ContainsFunc(list, func(c agent.ModelCheck) bool { return c.Problem == nil })
	for _, c := range list {
		name := "the credential for the model"
		if c.Name != "" {
			name = "credential " + c.Name + " for the model"
		}
		f := doctor.Finding{What: name + ": " + c.Host + " answers"}
		switch e := c.Problem; {
		case c.Closed:
			f.What = name +
				": not checked, because only the CLI may use a subscription; `worker check-model` on a " +
				"worker's machine asks with it"
		case e != nil:
			f = doctor.Finding{
				What: name + " does not work at " + c.Host, Why: e.Message, Remedy: e.Remedy, Fatal: useless,
			}
		}
		found = append(found, f)
	}
	return found
}

// checkModel asks the model if this process has its credentials, and says what workers know of theirs if not.
func (p *Parts) checkModel(ctx context.Context) []doctor.Finding {
	if p.runner != nil {
		found, _ := p.model.Get(ctx, "", func(ctx context.Context) ([]doctor.Finding, error) { // fails with ctx only
			return CheckCredentials(ctx, p.runner, p.Config.Model.Name), nil
		})
		return found
	}
	const what = "workers hold the credentials for the model, so they are not tried here; `worker check-model` on a " +
		"worker's machine asks the provider"
	known, err := desk.FleetOf(p.Desk).Credentials(ctx)
	if err != nil {
		return []doctor.Finding{{What: what}} // Redis is checked elsewhere
	}
	var held []string
	for _, c := range known {
		if c.Until.After(time.Now()) {
			held = append(held, fmt.Sprintf("%s is held until %s: the model answered %d", c.Name,
				c.Until.UTC().Format(time.RFC3339), c.Status))
		}
	}
	return []doctor.Finding{{What: what, Why: strings.Join(held, "; ")}}
}
