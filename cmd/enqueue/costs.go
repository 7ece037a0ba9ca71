package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/errand-fleet/errand/internal/legible"
	"github.com/errand-fleet/errand/tasks"
)

// costs is what GET /api/costs tells.
type costs struct {
	By []tasks.CostGroup `json:"by"`
	tasks.Costs
}

func costsCommand(t *terminal, flags *flag.FlagSet) func(context.Context, []string) error {
	by := flags.String("by", "", "a row for each of `these`: day, person, channel, repository, model, several with commas; default day")
	query := map[string]*string{
		"days":       numberFlag(flags, "days", "the last so many `days`, today included; default 30"),
		"from":       dayFlag(flags, "from", "from this `day` on, such as 2026-01-31"),
		"to":         dayFlag(flags, "to", "up to this `day`"),
		"person":     flags.String("person", "", "only of this `person`: a name in people: of errand.yaml, U02ABC, or slack/U02ABC"),
		"channel":    flags.String("channel", "", "only of this `channel`: C02ABC, or slack/C02ABC"),
		"repository": flags.String("repo", "", "only of this repository, `owner/name`"),
		"model":      flags.String("model", "", "only of this `model`"),
	}
	raw := flags.Bool("json", false, "print the API's own answer")
	sheet := flags.Bool("csv", false, "print it for a spreadsheet")
	return func(ctx context.Context, args []string) error {
		if len(args) > 0 || *raw && *sheet {
			return misused
		}
		q := url.Values{}
		for name, value := range query {
			if *value != "" {
				q.Set(name, *value)
			}
		}
		if *by != "" {
			q["by"] = strings.Split(*by, ",")
		}
		if *sheet {
			q.Set("format", "csv")
			return t.copy(ctx, "/api/costs?"+q.Encode())
		}
		var c costs
		b, err := t.door.call(ctx, http.MethodGet, "/api/costs?"+q.Encode(), &c)
		if err != nil {
			return err
		}
		if *raw {
			err := t.json(b)
			return err
		}
		t.sums(c)
		return nil
	}
}

// copy prints an answer as it is, however long that takes.
func (t *terminal) copy(ctx context.Context, path string) error {
	resp, err := t.door.open(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if t.stdout.TTY() {
		return t.print(resp.Body, legible.JSON)
	}
	if _, err := io.Copy(t.stdout, resp.Body); err != nil {
		return fmt.Errorf("copy answer: %w", err)
	}
	return nil
}

// sums prints the table; names that are not there are dashes.
func (t *terminal) sums(c costs) {
	var heads []string
	for _, group := range c.By {
		heads = append(heads, strings.ToUpper(string(group)))
	}
	list := newTable(append(heads, "COST", "RUNS", "TOKENS IN", "OUT")...)
	list.spare = []string{"OUT", "TOKENS IN", "RUNS"}
	line := func(names []string, s tasks.CostSum) {
		in := s.Usage.Input + s.Usage.CacheRead + s.Usage.CacheCreation
		list.add(append(names, dollars(s.USD), fmt.Sprint(s.Runs), fmt.Sprint(in), fmt.Sprint(s.Usage.Output))...)
	}
	for _, row := range c.Rows {
		names := make([]string, len(c.By))
		for i, group := range c.By {
			names[i] = cmp.Or(row.Name(group), "-")
			if row.Other && group != tasks.ByDay {
				names[i] = "(other)"
			}
		}
		line(names, row.CostSum)
	}
	total := make([]string, len(c.By))
	total[0] = "all"
	line(total, c.Total)
	list.print(t.stdout)
	if c.More > 0 {
		say(t.stderr, "%d more rows are in the sums; -csv has all\n", c.More)
	}
	if c.LeftOut != nil {
		say(t.stderr, "$%.2f of %d runs is not in here: there was no room to note who they were for\n", c.LeftOut.USD, c.LeftOut.Runs)
	}
}
