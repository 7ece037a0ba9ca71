package config

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Print writes every variable as NAME=value, group by group. Secrets are hidden, and unset variables are commented out
// with their defaults. With the secrets filled in, the output is an env file for a shell or Compose.
func (c Config) Print(w io.Writer) error {
	out := bufio.NewWriter(w)
	for _, group := range c.ByGroup() {
		fmt.Fprintln(out, "#", group[0].Group)
		for _, s := range group {
			if s.Given {
				fmt.Fprintf(out, "%s=%s\n", s.Name, Quote(s.Value))
			} else {
				fmt.Fprintf(out, "# %s=%s\n", s.Name, Quote(cmp.Or(s.Default, s.Value)))
			}
		}
		fmt.Fprintln(out)
	}
	fmt.Fprintf(out, "# %s\n", c.Summary())
	if err := out.Flush(); err != nil {
		return fmt.Errorf("print the configuration: %w", err)
	}
	return nil
}

// Summary describes the content of errand.yaml in one line, or says that it is missing.
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
	count(len(r.Schedules), "schedule", "schedules")
	count(len(r.Hooks), "hook", "hooks")
	count(len(r.Webhooks), "webhook", "webhooks")
	count(len(r.Credentials), "credential for the model", "credentials for the model")
	count(r.Limits.Repository, "run at once in a repository", "runs at once in a repository")
	count(r.Limits.User, "run at once for a person", "runs at once for a person")
	for _, budget := range []struct {
		usd float64
		of  string
	}{
		{b.Day, "/day"},
		{b.Repository, "/day for a repository"},
		{b.Channel, "/day for a channel"},
		{b.User, "/day for a person"},
		{b.Task, "/task"},
	} {
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

// Routed reports whether errand.yaml exists and lists repositories or limits runs or costs.
func (c Config) Routed() bool {
	b := c.Routing.Budgets
	return len(c.Routing.Repositories) > 0 || c.Routing.Limits != (Limits{}) ||
		b.Task+b.User+b.Channel+b.Repository+b.Day > 0
}
