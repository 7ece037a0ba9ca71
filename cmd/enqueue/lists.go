package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/errand-fleet/errand/internal/display"
)

// listing is a list of the API that is printed as a table.
type listing struct {
	request string   // such as GET /api/links
	field   string   // of the response, with the list
	none    string   // what is said of an empty one
	heads   []string // of the columns
	spare   []string // see table
	cells   func(row) []string
}

func (t *terminal) printList(ctx context.Context, l listing) error {
	return show(ctx, t, l.request, nil, func(response row) {
		rows := response.rows(l.field)
		if len(rows) == 0 {
			printf(t.stderr, "%s\n", l.none)
			return
		}
		list := newTable(l.heads...)
		list.spare = l.spare
		for _, r := range rows {
			list.add(l.cells(r)...)
		}
		list.print(t.stdout)
	})
}

// listOf returns the command of a group that prints its list.
func (t *terminal) listOf(about string, l listing) *cobra.Command {
	return &cobra.Command{Use: "list", Short: about, RunE: func(c *cobra.Command, _ []string) error {
		return t.printList(c.Context(), l)
	}}
}

// action returns a command that sends a request about its argument and says what came of it.
func (t *terminal) action(use, about, request string, done func(row) string) *cobra.Command {
	return &cobra.Command{Use: use, Short: about, RunE: func(c *cobra.Command, args []string) error {
		return show(c.Context(), t, fmt.Sprintf(request, url.PathEscape(args[0])), nil, func(r row) {
			printf(t.stdout, "%s\n", display.Line(done(r)))
		})
	}}
}

func peopleCommand(t *terminal) *cobra.Command {
	const about = "List the accounts in Slack that people have linked to GitHub"
	list := t.listOf(about, listing{
		request: "GET /api/links", field: "links", none: "No linked accounts.",
		heads: []string{"SLACK", "NAME", "WORKSPACE", "GITHUB", "EXPIRES"},
		cells: func(r row) []string {
			return []string{r.text("user"), r.text("name"), r.text("team"), r.text("login"), r.day("until")}
		},
	})
	unlink := t.action("unlink USER", "End a link", "DELETE /api/links/%s",
		func(row) string { return "The account in Slack is not linked any more." })
	return group("people", about+", or unlink one", list, unlink)
}

func tokenCommand(t *terminal) *cobra.Command {
	list := t.listOf("List the tokens", listing{
		request: "GET /api/tokens", field: "tokens", none: "No tokens.",
		heads: []string{"NAME", "ROLE", "REPOSITORIES", "BY", "CREATED", "EXPIRES"}, spare: []string{"CREATED", "BY"},
		cells: func(r row) []string {
			expires := r.day("expires")
			if !time.Now().Before(r.time("expires")) {
				expires += " (expired)"
			}
			return []string{
				r.text("name"), r.text("role"), cmp.Or(r.text("repositories"), "all"), r.text("by"), r.day("created"),
				expires,
			}
		},
	})
	revoke := t.action("revoke NAME", "End a token", "DELETE /api/tokens/%s",
		func(row) string { return "The token is worth nothing now." })
	return group("token", "Manage API tokens", list, createTokenCommand(t), revoke)
}

func schedulesCommand(t *terminal) *cobra.Command {
	list := t.listOf("List the schedules", listing{
		request: "GET /api/schedules", field: "schedules", none: "No schedules.",
		heads: []string{"NAME", "TIMES", "REPOSITORY", "NEXT", "FAILURES", "SKIPPED", "LATEST TASK"},
		spare: []string{"SKIPPED", "REPOSITORY"},
		cells: func(r row) []string {
			next, latest := r.minute("next"), ""
			if r.has("task") {
				latest = display.TaskID(r.text("task"))
			}
			if r.has("paused") {
				next = "paused since " + r.minute("paused")
			}
			return []string{
				r.text("name"), r.text("when"), r.text("repo"), next, r.text("failures"), r.text("skipped"), latest,
			}
		},
	})
	resume := t.action("resume NAME", "Let a paused schedule start tasks again", "POST /api/schedules/%s/resume",
		func(r row) string { return r.text("name") + " starts its next task at " + r.minute("next") })
	return group("schedules", "List the schedules, or let a paused one start tasks again", list, resume)
}

func inboxCommand(t *terminal) *cobra.Command {
	const about = "List the events and deliveries of webhooks that have failed"
	list := t.listOf(about, listing{
		request: "GET /api/inbox", field: "events", none: "No event has failed.",
		heads: []string{"ID", "SOURCE", "KIND", "ATTEMPTS", "FAILED", "NEXT", "PROBLEM"},
		spare: []string{"KIND", "SOURCE"},
		cells: func(r row) []string {
			return []string{
				r.text("id"), r.text("source"), r.text("kind"), r.text("attempts"), r.minute("failed"),
				cmp.Or(r.minute("next"), "given up"), r.text("problem"),
			}
		},
	})
	replay := t.action("replay ID", "Try an event or a delivery again", "POST /api/inbox/%s/replay",
		func(r row) string { return r.text("id") + " is tried again" })
	return group("inbox", about+", or try one again", list, replay)
}

func findingsCommand(t *terminal) *cobra.Command {
	c := &cobra.Command{Use: "findings", Short: "Show what people did with the findings of reviews"}
	repo := c.Flags().String("repo", "", "the findings of the reviews in this `owner/name`")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if *repo == "" {
			return usageError{errors.New("missing --repo OWNER/NAME")}
		}
		return t.printList(c.Context(), listing{
			request: "GET /api/findings?repository=" + url.QueryEscape(*repo), field: "kinds",
			none: "no findings counted for this repository", heads: []string{"KIND", "FIXED", "DISMISSED", "IGNORED"},
			cells: func(r row) []string {
				return []string{r.text("kind"), r.text("fixed"), r.text("dismissed"), r.text("ignored")}
			},
		})
	}
	return c
}

func envCommand(t *terminal) *cobra.Command {
	c := &cobra.Command{
		Use: "env", Short: "Rebuild the environment of a repository",
		RunE: func(*cobra.Command, []string) error {
			return usageError{errors.New("missing command, such as rebuild")}
		},
	}
	c.AddCommand(t.action("rebuild OWNER/NAME", "Set up a new environment for the next run",
		"POST /api/fleet/environments/%s/rebuild", func(r row) string {
			return "the next run in " + r.text("repo") + " sets up a new environment, on every worker"
		}))
	return c
}
