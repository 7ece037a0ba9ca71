package main

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/errand-fleet/errand/cmd/enqueue/internal/term"
	"github.com/errand-fleet/errand/internal/display"
)

func auditCommand(t *terminal) *cobra.Command {
	list := &cobra.Command{Use: "list", Short: "List what people changed, newest first"}
	query := parameterFlags(
		list.Flags(),
		parameter{flag: "who", name: "who", about: "only entries with this part of a `name`"},
		parameter{flag: "what", name: "what", about: "only entries with these `words`, such as cancel or a task's ID"},
		parameter{flag: "from", name: "from", about: "only entries from here: console, slack or github"},
		parameter{
			flag: "since", name: "since",
			about: "only entries since this `day` like 2026-01-31, or time like 2026-01-31T12:00:00Z",
		},
		parameter{
			flag: "limit", name: "limit", about: "at most this `number`, up to 1000; default 100",
		},
		parameter{flag: "skip", name: "skip", about: "leave out this `number` of the newest"},
	)
	list.RunE = func(c *cobra.Command, _ []string) error {
		return show(c.Context(), t, "GET /api/audit?"+query.Encode(), nil, t.printAudit)
	}
	verify := &cobra.Command{Use: "verify", Short: "Verify that no entry was changed"}
	verify.RunE = func(c *cobra.Command, _ []string) error {
		v, err := shown(c.Context(), t, "GET /api/audit/verify", nil, t.printVerified)
		if v.has("problem") {
			return exitFailed
		}
		return err
	}
	return group("audit", "List what people changed, or verify that no entry was changed", list, verify)
}

func (t *terminal) printVerified(v row) {
	if v.has("problem") {
		printf(t.stdout, "The chain is broken: %s. %s entries before it are intact.\n", display.Line(v.text("problem")),
			v.text("entries"))
		return
	}
	printf(t.stdout, "The chain of %s entries is intact.\n", v.text("entries"))
}

// printAudit prints a table of entries.
func (t *terminal) printAudit(page row) {
	entries := page.rows("entries")
	list := newTable("ENTRY", "TIME", "WHO", "ROLE", "FROM", "STATUS", "WHAT")
	list.spare, list.prose = []string{"FROM", "ROLE", "ENTRY"}, true
	list.columns[5].style = func(row int) term.Style {
		if entries[row].number("status") >= http.StatusBadRequest {
			return term.Red
		}
		return term.Green
	}
	for _, e := range entries {
		list.add(e.text("seq"), moment(e.time("time")), cmp.Or(e.text("name"), e.text("who")), e.text("role"),
			e.text("from"), e.text("status"), strings.TrimSuffix(e.text("what")+": "+e.text("answer"), ": "))
	}
	list.print(t.stdout)
	switch {
	case page.has("next"):
		printf(t.stderr, "For older entries add --skip %s\n", page.text("next"))
	case len(entries) == 0:
		printf(t.stderr, "No entries.\n")
	}
}

func createTokenCommand(t *terminal) *cobra.Command {
	c := &cobra.Command{Use: "create NAME", Short: "Create a token, and print it once"}
	days := 90
	scope := c.Flags().String("scope", "",
		"a `ROLE`, viewer, user, operator or admin; ROLE:acme/*,acme/web for some repositories")
	c.Flags().Func("expires", "after this `time`, such as 30d; default 90d, at most 366d",
		func(text string) (err error) {
			if days, err = strconv.Atoi(strings.TrimSuffix(text, "d")); err != nil || days < 1 {
				return errors.New("must be a number of days like 30d")
			}
			return nil
		})
	c.RunE = func(c *cobra.Command, args []string) error {
		if *scope == "" {
			return usageError{errors.New("missing --scope ROLE")}
		}
		role, repositories, limited := strings.Cut(*scope, ":")
		want := map[string]any{"name": args[0], "role": role, "days": days}
		if limited {
			want["repositories"] = strings.Split(repositories, ",")
		}
		return show(c.Context(), t, "POST /api/tokens", want, func(made row) {
			printf(t.stdout, "%s\n", display.Line(made.text("token")))
			printf(t.stderr, "This is the token %s. It is not shown again. It expires on %s.\n", made.text("name"),
				made.day("expires"))
		})
	}
	return c
}
