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
	add := func(errs []error, page string, path ...string) {
		for _, err := range errs {
			p := c.Problem(err.Error(), "see "+page, path...)
			p.Where += ":"
			problems = append(problems, p)
		}
	}
	for i, one := range registries(c) {
		add(agent.CheckRegistries([]agent.Registry{one}, getenv), "docs/environment.md",
			"registries", strconv.Itoa(i+1))
	}
	for _, one := range credentials(c) {
		add(agent.CheckCredentials([]agent.ModelCredential{one}, getenv), "docs/models.md",
			c.CredentialPath(one.Name)...)
	}
	for _, one := range servers(c) {
		add(agent.CheckServers([]agent.MCPServer{one}, getenv), "docs/mcp.md", "mcp", one.Name)
	}
	return problems
}

// unlessReported returns those of further problems whose line has none yet.
func unlessReported(problems, further config.Problems) config.Problems {
	return slices.DeleteFunc(further, func(one config.Problem) bool {
		return slices.ContainsFunc(problems, func(p config.Problem) bool { return p.Line == one.Line })
	})
}

// rules returns the rules of errand.yaml. A rule that can never apply is a problem.
func rules(c config.Config) (list []agent.Rule, problems config.Problems) {
	for i, r := range c.Routing.Rules {
		rule := agent.Rule{Tool: r.Tool, Input: r.Input, Action: agent.Action(r.Action), Reason: r.Reason}
		known := slices.Contains([]string{config.ActionAllow, config.ActionDeny, config.ActionAsk}, r.Action)
		if err := rule.Validate(); err != nil && r.Tool != "" && known { // config reports the others
			problems = append(problems, c.Problem("cannot work: "+err.Error(),
				"correct it; docs/configure.md says what a rule may name", "rules", strconv.Itoa(i+1)))
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
			problems = append(problems, c.Problem(strings.TrimSuffix(one, "."),
				"correct it; docs/environment.md lists what can be declared", "repositories", name))
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
			problems = append(problems, c.Problem("cannot be used: "+err.Error(),
				"correct the path, or check the files and write the checksum that they have",
				"plugins", strconv.Itoa(i+1)))
		}
		all = append(all, one)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return all, nil
}
