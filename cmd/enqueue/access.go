package main

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/errand-fleet/errand/cmd/enqueue/internal/term"
	"github.com/errand-fleet/errand/internal/legible"
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
			flag: "limit", name: "limit", about: "at most this `number`, up to 1000; default 100", valid: validNumber,
		},
		parameter{flag: "skip", name: "skip", about: "leave out this `number` of the newest", valid: validNumber},
	)
	list.RunE = func(c *cobra.Command, _ []string) error {
		return show(c.Context(), t, "GET /api/audit?"+query.Encode(), nil, t.printAudit)
	}
	verify := &cobra.Command{Use: "verify", Short: "Verify that no entry was changed"}
	verify.RunE = func(c *cobra.Command, _ []string) error {
		v, err := shown(c.Context(), t, "GET /api/audit/verify", nil, t.printVerified)
		if v.Problem != "" {
			return exitFailed
		}
		return err
	}
	return group("audit", "List what people changed, or verify that no entry was changed", list, verify)
}

// verified is the response of GET /api/audit/verify.
type verified struct {
	Entries int
	Problem string
}

func (t *terminal) printVerified(v verified) {
	if v.Problem == "" {
		printf(t.stdout, "The chain of %d entries is intact.\n", v.Entries)
		return
	}
	printf(t.stdout, "The chain is broken: %s. %d entries before it are intact.\n", legible.Line(v.Problem), v.Entries)
}

// auditPage is the response of GET /api/audit.
type auditPage struct {
	Entries []struct {
		Seq                         int64
		Time                        time.Time
		Name, Who, Role, From, What string
		Status                      int
	}
	Next int
}

// printAudit prints a table of entries.
func (t *terminal) printAudit(page auditPage) {
	list := newTable("ENTRY", "TIME", "WHO", "ROLE", "FROM", "STATUS", "WHAT")
	list.spare, list.prose = []string{"FROM", "ROLE", "ENTRY"}, true
	list.columns[5].style = func(row int) term.Style {
		if page.Entries[row].Status >= http.StatusBadRequest {
			return term.Red
		}
		return term.Green
	}
	for _, e := range page.Entries {
		list.add(strconv.FormatInt(e.Seq, 10), e.Time.UTC().Format("2006-01-02 15:04:05"), cmp.Or(e.Name, e.Who),
			e.Role, e.From, strconv.Itoa(e.Status), e.What)
	}
	list.print(t.stdout)
	switch {
	case page.Next > 0:
		printf(t.stderr, "For older entries add --skip %d\n", page.Next)
	case len(page.Entries) == 0:
		printf(t.stderr, "No entries.\n")
	}
}

func tokenCommand(t *terminal) *cobra.Command {
	list := &cobra.Command{Use: "list", Short: "List the tokens"}
	list.RunE = func(c *cobra.Command, _ []string) error {
		return show(c.Context(), t, "GET /api/tokens", nil, func(l struct{ Tokens []token }) {
			t.printTokens(l.Tokens, time.Now())
		})
	}
	revoke := &cobra.Command{Use: "revoke NAME", Short: "End a token"}
	revoke.RunE = func(c *cobra.Command, args []string) error {
		return t.remove(c.Context(), "tokens", args[0], "The token %s is worth nothing now.\n")
	}
	return group("token", "Manage API tokens", list, createTokenCommand(t), revoke)
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
		return show(c.Context(), t, "POST /api/tokens", want, func(made struct {
			token
			Token string
		},
		) {
			printf(t.stdout, "%s\n", legible.Line(made.Token))
			printf(t.stderr, "This is the token %s. It is not shown again. It expires on %s.\n", made.Name,
				made.Expires.UTC().Format(time.DateOnly))
		})
	}
	return c
}

// remove deletes an item of a list of the API, and says so.
func (t *terminal) remove(ctx context.Context, list, name, done string) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	resp, err := t.api.open(ctx, "DELETE /api/"+list+"/"+url.PathEscape(name), nil)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	printf(t.stderr, done, legible.Line(name))
	return nil
}

func peopleCommand(t *terminal) *cobra.Command {
	list := &cobra.Command{Use: "list", Short: "List the accounts in Slack that people have linked to GitHub"}
	list.RunE = func(c *cobra.Command, _ []string) error {
		return show(c.Context(), t, "GET /api/links", nil, func(l struct{ Links []link }) { t.printLinks(l.Links) })
	}
	unlink := &cobra.Command{Use: "unlink USER", Short: "End a link"}
	unlink.RunE = func(c *cobra.Command, args []string) error {
		return t.remove(c.Context(), "links", args[0], "The account %s in Slack is not linked any more.\n")
	}
	return group("people", "List the accounts in Slack that people have linked to GitHub, or unlink one", list, unlink)
}

// link is a person's account in Slack that they have linked to GitHub.
type link struct {
	User, Name, Team, Login string
	Until                   time.Time
}

// printLinks prints a table of linked accounts.
func (t *terminal) printLinks(all []link) {
	list := newTable("SLACK", "NAME", "WORKSPACE", "GITHUB", "EXPIRES")
	for _, l := range all {
		list.add(l.User, l.Name, l.Team, l.Login, l.Until.UTC().Format(time.DateOnly))
	}
	list.print(t.stdout)
	if len(all) == 0 {
		printf(t.stderr, "No linked accounts.\n")
	}
}

// printTokens prints a table of tokens.
func (t *terminal) printTokens(all []token, now time.Time) {
	list := newTable("NAME", "ROLE", "REPOSITORIES", "BY", "CREATED", "EXPIRES")
	list.spare = []string{"CREATED", "BY"}
	for _, one := range all {
		repositories, expires := strings.Join(one.Repositories, ","), one.Expires.UTC().Format(time.DateOnly)
		if repositories == "" {
			repositories = "all"
		}
		if !now.Before(one.Expires) {
			expires += " (expired)"
		}
		list.add(one.Name, one.Role, repositories, one.By, one.Created.UTC().Format(time.DateOnly), expires)
	}
	list.print(t.stdout)
	if len(all) == 0 {
		printf(t.stderr, "No tokens.\n")
	}
}
