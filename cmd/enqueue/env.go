package main

import (
	"cmp"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/errand-fleet/errand/internal/legible"
)

func envCommand(t *terminal) *cobra.Command {
	const path = "/api/fleet/environments"
	list := &cobra.Command{Use: "list", Short: "List the environments that workers keep"}
	list.RunE = func(c *cobra.Command, _ []string) error {
		return show(c.Context(), t, "GET "+path, nil, func(l struct{ Environments []environment }) {
			t.printEnvironments(l.Environments, time.Now())
		})
	}
	one := &cobra.Command{Use: "show OWNER/NAME", Short: "Show all about those of a repository"}
	one.RunE = func(c *cobra.Command, args []string) error {
		return show(c.Context(), t, "GET "+path+"?repo="+url.QueryEscape(args[0]), nil, func(l struct{ Environments []environment }) {
			t.printEachEnvironment(l.Environments, time.Now())
		})
	}
	rebuild := &cobra.Command{Use: "rebuild OWNER/NAME", Short: "Set up a new environment for the next run"}
	rebuild.RunE = func(c *cobra.Command, args []string) error {
		return show(c.Context(), t, "POST "+path+"/"+url.PathEscape(args[0])+"/rebuild", nil, func(r struct{ Repo string }) {
			printf(t.stdout, "the next run in %s sets up a new environment, on every worker\n", legible.Line(r.Repo))
		})
	}
	remove := &cobra.Command{Use: "rm KEY", Short: "Remove an environment when no run uses it"}
	remove.RunE = func(c *cobra.Command, args []string) error {
		return show(c.Context(), t, "DELETE "+path+"/"+url.PathEscape(args[0]), nil, func(r struct{ Repo string }) {
			printf(t.stdout, "the workers remove this environment of %s when no run uses it\n", legible.Line(r.Repo))
		})
	}
	return group("env", "List the environments of repositories, rebuild one, or remove one", list, one, rebuild, remove)
}

const noEnvironment = "No live worker keeps an environment.\n"

// printEachEnvironment prints all about each environment, with an empty line between them.
func (t *terminal) printEachEnvironment(all []environment, now time.Time) {
	if len(all) == 0 {
		printf(t.stderr, noEnvironment)
	}
	for i, e := range all {
		state := "current"
		if e.Rebuild != nil {
			state = "outdated since " + e.Rebuild.At.Local().Format(time.DateTime)
		}
		if i > 0 {
			printf(t.stdout, "\n")
		}
		for _, fact := range [][2]string{
			{"key", e.ID},
			{"host", e.Host},
			{"worker", e.Worker},
			{"made", e.Made.Local().Format(time.DateTime)},
			{"used", legible.Age(now.Sub(e.Used)) + " ago"},
			{"set up in", legible.Lasted(e.took())},
			{"size", legible.Bytes(e.Bytes)},
			{"declared by", cmp.Or(e.From, "unknown")},
			{"state", state},
		} {
			printf(t.stdout, "%-11s  %s\n", fact[0], legible.Line(fact[1]))
		}
	}
}

// printEnvironments prints a table of environments.
func (t *terminal) printEnvironments(all []environment, now time.Time) {
	if len(all) == 0 {
		printf(t.stderr, noEnvironment)
		return
	}
	list := newTable("REPOSITORY", "HOST", "AGE", "SET-UP", "SIZE", "USED", "STATE")
	list.spare = []string{"SET-UP", "SIZE", "USED"}
	for _, e := range all {
		state := "current"
		if e.Rebuild != nil {
			state = "outdated"
		}
		list.add(e.Repo, e.Host, legible.Age(now.Sub(e.Made)), legible.Lasted(e.took()), legible.Bytes(e.Bytes),
			legible.Age(now.Sub(e.Used))+" ago", state)
	}
	list.print(t.stdout)
}
