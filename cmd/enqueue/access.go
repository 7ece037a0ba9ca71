package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/errand-fleet/errand/cmd/enqueue/internal/term"
	"github.com/errand-fleet/errand/internal/legible"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/web/api"
	"github.com/errand-fleet/errand/web/auth"
)

func auditCommand(t *terminal, flags *flag.FlagSet) runFunc {
	query := parameterFlags(
		flags,
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
	return func(ctx context.Context, args []string) error {
		switch {
		case len(args) == 0:
			return show(ctx, t, "GET /api/audit?"+query.Encode(), nil, t.printAudit)
		case len(args) > 1 || args[0] != "verify" || len(query) > 0:
			return exitUsage
		}
		v, err := shown(ctx, t, "GET /api/audit/verify", nil, t.printVerified)
		if v.Problem != "" {
			return exitFailed
		}
		return err
	}
}

func (t *terminal) printVerified(v api.Verified) {
	if v.Problem == "" {
		printf(t.stdout, "The chain of %d entries is intact.\n", v.Entries)
		return
	}
	printf(t.stdout, "The chain is broken: %s. %d entries before it are intact.\n", legible.Line(v.Problem), v.Entries)
}

// printAudit prints a table of entries.
func (t *terminal) printAudit(page api.AuditPage) {
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
		printf(t.stderr, "For older entries add -skip %d\n", page.Next)
	case len(page.Entries) == 0:
		printf(t.stderr, "No entries.\n")
	}
}

func tokenCommand(t *terminal, flags *flag.FlagSet) runFunc {
	want := api.TokenRequest{Days: 90}
	scope := flags.String("scope", "",
		"create: a `ROLE`, viewer, user, operator or admin; ROLE:acme/*,acme/web for some repositories")
	flags.Func("expires", "create: after this `time`, such as 30d; default 90d, at most 366d",
		func(text string) (err error) {
			if want.Days, err = strconv.Atoi(strings.TrimSuffix(text, "d")); err != nil || want.Days < 1 {
				return errors.New("must be a number of days like 30d")
			}
			return nil
		})
	return func(ctx context.Context, args []string) error {
		switch {
		case len(args) == 2 && args[0] == "create" && *scope != "":
			role, repositories, limited := strings.Cut(*scope, ":")
			if err := want.Role.UnmarshalText([]byte(role)); err != nil {
				return usageError{fmt.Errorf("read -scope: %w", err)}
			}
			if want.Name = args[1]; limited {
				want.Repositories = strings.Split(repositories, ",")
			}
			return show(ctx, t, "POST /api/tokens", want, func(made api.NewToken) {
				printf(t.stdout, "%s\n", legible.Line(made.Secret))
				printf(t.stderr, "This is the token %s. It is not shown again. It expires on %s.\n", made.Name,
					made.Expires.UTC().Format(time.DateOnly))
			})
		case len(args) == 1 && args[0] == "list":
			return show(ctx, t, "GET /api/tokens", nil, func(l api.TokenList) { t.printTokens(l.Tokens, time.Now()) })
		case len(args) == 2 && args[0] == "revoke":
			return t.remove(ctx, "tokens", args[1], "The token %s is worth nothing now.\n")
		}
		return exitUsage
	}
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

func peopleCommand(t *terminal, _ *flag.FlagSet) runFunc {
	return func(ctx context.Context, args []string) error {
		switch {
		case len(args) == 1 && args[0] == "list":
			return show(ctx, t, "GET /api/links", nil, func(l api.LinkList) { t.printLinks(l.Links) })
		case len(args) == 2 && args[0] == "unlink":
			return t.remove(ctx, "links", args[1], "The account %s in Slack is not linked any more.\n")
		}
		return exitUsage
	}
}

// printLinks prints a table of linked accounts.
func (t *terminal) printLinks(all []tasks.Link) {
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
func (t *terminal) printTokens(all []auth.Token, now time.Time) {
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
		list.add(one.Name, one.Role.String(), repositories, one.By, one.Created.UTC().Format(time.DateOnly), expires)
	}
	list.print(t.stdout)
	if len(all) == 0 {
		printf(t.stderr, "No tokens.\n")
	}
}
