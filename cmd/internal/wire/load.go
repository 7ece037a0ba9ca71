package wire

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/store"
)

// Load reads and checks the configuration. Its error is a [config.Problems] with everything that prevents a program of
// that role from starting, except problems that only Redis can reveal. For a role that runs tasks it also checks the
// user and the sandbox. Both the start and -print-config use it.
func Load(getenv func(string) string, role config.Role) (config.Config, error) {
	c, err := config.Load(getenv, role)
	problems, ok := errors.AsType[config.Problems](err)
	if err != nil && !ok {
		return c, err
	}
	_, wrong := rules(c)
	problems = append(problems, wrong...)
	if role != config.RoleFrontdoor { // a front door starts no run
		for _, err := range agent.CheckServers(servers(c), getenv) {
			problems = append(problems, config.Problem{Where: c.Paths.File + ": mcp:", What: err.Error(), Remedy: "see docs/mcp.md"})
		}
	}
	if len(problems) == 0 {
		problems = try(c)
	}
	if role == config.RoleWorker || role == config.RoleStandalone {
		problems = append(problems, contained(c)...)
	}
	if len(problems) > 0 {
		return c, problems
	}
	return c, nil
}

// try creates the parts, which do not connect yet, and closes them, to find errors that would stop the start, such as
// an invalid key.
func try(c config.Config) config.Problems {
	if c.Redis.URL == "" {
		c.Redis.URL = "redis://127.0.0.1:1/0" // a standalone system starts its own Redis
	}
	p, err := New(c, slog.New(slog.DiscardHandler), Options{})
	if err == nil {
		err = p.Close()
	}
	if err != nil {
		return config.Problems{{Where: "the configuration", What: "cannot be used: " + err.Error(), Remedy: "correct it"}}
	}
	return nil
}

// rules returns the rules of errand.yaml. A rule that can never apply is a problem.
func rules(c config.Config) (list []agent.Rule, problems config.Problems) {
	for i, r := range c.Routing.Rules {
		rule := agent.Rule{Tool: r.Tool, Input: r.Input, Action: agent.Action(r.Action), Reason: r.Reason}
		if err := rule.Validate(); err != nil && r.Tool != "" && r.Action != "" { // config reports missing fields
			problems = append(problems, config.Problem{
				Where: fmt.Sprintf("%s: rule %d", c.Paths.File, i+1), What: "cannot work: " + err.Error(),
				Remedy: "correct it; docs/security.md says what a rule may name",
			})
		}
		list = append(list, rule)
	}
	return list, problems
}

// Notices returns findings about a valid configuration for the operator. The first one summarizes errand.yaml.
func Notices(c config.Config, environ []string) []store.Finding {
	list := []store.Finding{{What: c.Summary()}}
	if !c.Routed() {
		list[0].Severity = store.Note
		list[0].Why = "Every repository that errand's identity reaches may be worked on, and nothing bounds what runs cost."
		list[0].Remedy = "Write errand.yaml (`enqueue init`, errand.example.yaml), or set ERRAND_CONFIG to its path."
	}
	for _, p := range config.Unknown(environ) {
		list = append(list, store.Finding{
			Severity: store.Warning, What: p.Where + " " + p.What, Why: "A setting with a wrong name is not in force.", Remedy: p.Remedy,
		})
	}
	return list
}
