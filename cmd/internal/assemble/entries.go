package assemble

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/config"
)

// checkEntries returns the problems that package agent finds in the entries of errand.yaml.
func checkEntries(c config.Config, getenv func(string) string) (problems config.Problems) {
	add := func(where, remedy string, errs []error) {
		for _, err := range errs {
			problems = append(problems, config.Problem{Where: where + ":", What: err.Error(), Remedy: remedy})
		}
	}
	for i, one := range registries(c) {
		add(c.Where("registries", strconv.Itoa(i+1)), "see docs/environment.md",
			agent.CheckRegistries([]agent.Registry{one}, getenv))
	}
	for _, one := range credentials(c) {
		add(c.WhereCredential(one.Name), "see docs/models.md",
			agent.CheckCredentials([]agent.ModelCredential{one}, getenv))
	}
	for _, one := range servers(c) {
		add(c.Where("mcp", one.Name), "see docs/mcp.md", agent.CheckServers([]agent.MCPServer{one}, getenv))
	}
	return problems
}

// unlessReported returns those of further problems whose line has none yet.
func unlessReported(problems, further config.Problems) config.Problems {
	return slices.DeleteFunc(further, func(one config.Problem) bool {
		line, _, _ := strings.Cut(one.Where, " ")
		return slices.ContainsFunc(problems, func(p config.Problem) bool { return strings.HasPrefix(p.Where, line) })
	})
}

// rules returns the rules of errand.yaml. A rule that can never apply is a problem.
func rules(c config.Config) (list []agent.Rule, problems config.Problems) {
	for i, r := range c.Routing.Rules {
		rule := agent.Rule{Tool: r.Tool, Input: r.Input, Action: agent.Action(r.Action), Reason: r.Reason}
		known := slices.Contains([]string{config.ActionAllow, config.ActionDeny, config.ActionAsk}, r.Action)
		if err := rule.Validate(); err != nil && r.Tool != "" && known { // config reports the others
			problems = append(problems, config.Problem{
				Where: c.Where("rules", strconv.Itoa(i+1)), What: "cannot work: " + err.Error(),
				Remedy: "correct it; docs/configure.md says what a rule may name",
			})
		}
		list = append(list, rule)
	}
	return list, problems
}

// environments returns the problems of the declared environments.
func environments(c config.Config) (problems config.Problems) {
	for _, name := range slices.Sorted(maps.Keys(c.Routing.Repositories)) {
		_, wrong := c.Routing.Repositories[name].Checked()
		for _, one := range wrong {
			problems = append(problems, config.Problem{
				Where: c.Where("repositories", name), What: strings.TrimSuffix(one, "."),
				Remedy: "correct it; docs/environment.md lists what can be declared",
			})
		}
	}
	return problems
}

// plugins returns the operator's plugins.
func plugins(c config.Config) (all []agent.Instructions, err error) {
	var problems config.Problems
	for i, p := range c.Routing.Plugins {
		one, err := agent.ReadPlugin(p.Path, p.SHA256)
		if err != nil {
			problems = append(problems, config.Problem{
				Where: c.Where("plugins", strconv.Itoa(i+1)), What: "cannot be used: " + err.Error(),
				Remedy: "correct the path, or check the files and write the checksum that they have",
			})
		}
		all = append(all, one)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return all, nil
}
