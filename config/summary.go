package config

import (
	"fmt"
	"strconv"
	"strings"
)

// Summary says in one line what errand.yaml puts in force, or that there is none.
func (c Config) Summary() string {
	r, b := c.Routing, c.Routing.Budgets
	var parts []string
	count := func(n int, one, many string) {
		if n == 1 {
			many = one
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, many))
		}
	}
	count(len(r.Repositories), "repository", "repositories")
	count(len(r.Channels), "channel", "channels")
	count(len(r.People), "person", "people")
	count(len(r.Rules), "rule", "rules")
	count(len(r.MCP), "MCP server", "MCP servers")
	count(r.Limits.Repository, "run at once in a repository", "runs at once in a repository")
	count(r.Limits.User, "run at once for a person", "runs at once for a person")
	count(r.Limits.Credential, "run at once with a credential", "runs at once with a credential")
	for _, budget := range []struct {
		usd float64
		of  string
	}{{b.Day, "/day"}, {b.Repository, "/day for a repository"}, {b.Channel, "/day for a channel"}, {b.User, "/day for a person"}, {b.Task, "/task"}} {
		if budget.usd > 0 {
			parts = append(parts, "$"+strconv.FormatFloat(budget.usd, 'f', -1, 64)+budget.of)
		}
	}
	const nothing = "no repositories, limits or budgets are in force"
	switch {
	case c.Paths.File == "":
		return "No errand.yaml: " + nothing
	case len(parts) == 0:
		return c.Paths.File + " sets nothing: " + nothing
	}
	return c.Paths.File + ": " + strings.Join(parts, ", ")
}

// Routed reports whether there is an errand.yaml that lists repositories, or bounds what runs or what it costs.
func (c Config) Routed() bool {
	b := c.Routing.Budgets
	return len(c.Routing.Repositories) > 0 || c.Routing.Limits != (Limits{}) || b.Task+b.User+b.Channel+b.Repository+b.Day > 0
}
