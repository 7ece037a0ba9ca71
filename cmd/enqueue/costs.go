package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/errand-fleet/errand/tasks"
)

// costs is the response of GET /api/costs.
type costs struct {
	By []tasks.CostGroup `json:"by"`
	tasks.Costs
}

func costsCommand(t *terminal, flags *flag.FlagSet) func(context.Context, []string) error {
	by := flags.String("by", "", "comma-separated `columns` to group by: day, person, channel, repository, model; default day")
	query := map[string]*string{
		"days":       numberFlag(flags, "days", "the last `days` including today; default 30"),
		"from":       dayFlag(flags, "from", "from this `day` on, such as 2026-01-31"),
		"to":         dayFlag(flags, "to", "up to this `day`"),
		"person":     flags.String("person", "", "only this `person`: a name in people: of errand.yaml, U02ABC, or slack/U02ABC"),
		"channel":    flags.String("channel", "", "only this `channel`: C02ABC, or slack/C02ABC"),
		"repository": flags.String("repo", "", "only this repository, `owner/name`"),
		"model":      flags.String("model", "", "only this `model`"),
	}
	raw := flags.Bool("json", false, "print the API's JSON")
	sheet := flags.Bool("csv", false, "print CSV")
	return func(ctx context.Context, args []string) error {
		if len(args) > 0 || *raw && *sheet {
			return exitUsage
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
			return t.copyResponse(ctx, "/api/costs?"+q.Encode())
		}
		var c costs
		b, err := t.api.call(ctx, http.MethodGet, "/api/costs?"+q.Encode(), nil, &c)
		if err != nil {
			return err
		}
		if *raw {
			return t.printJSON(b)
		}
		t.printCosts(c)
		return nil
	}
}

// printCosts prints the table, with dashes for unknown names.
func (t *terminal) printCosts(c costs) {
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
		printf(t.stderr, "%d more rows are included in the totals; -csv prints all\n", c.More)
	}
	if c.LeftOut != nil {
		printf(t.stderr, "$%.2f of %d runs is missing: the store was full\n", c.LeftOut.USD, c.LeftOut.Runs)
	}
}
