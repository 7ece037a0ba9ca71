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
	"text/tabwriter"

	"github.com/errand-fleet/errand/tasks"
)

// costs is what GET /api/costs tells.
type costs struct {
	By []tasks.CostGroup `json:"by"`
	tasks.Costs
}

func costsCommand(t *terminal, flags *flag.FlagSet) func(context.Context, []string) error {
	by := flags.String("by", "", "day, person, channel, repository, model, or several of them with commas (default day)")
	query := map[string]*string{
		"days":       flags.String("days", "", "the last so many, today included (default 30)"),
		"from":       flags.String("from", "", "the first day, such as 2026-01-31"),
		"to":         flags.String("to", "", "the last day"),
		"person":     flags.String("person", "", "only of this one: U1, or of one source slack/U1"),
		"channel":    flags.String("channel", "", "only of this one: C1, or of one source slack/C1"),
		"repository": flags.String("repo", "", "only of this one: owner/name"),
		"model":      flags.String("model", "", "only of this one"),
	}
	raw := flags.Bool("json", false, "print the API's own answer")
	sheet := flags.Bool("csv", false, "print it for a spreadsheet")
	return func(ctx context.Context, args []string) error {
		if len(args) > 0 || *raw && *sheet {
			return errUsage
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
			_, err := t.stdout.Write(b)
			return err
		}
		return t.sums(c)
	}
}

// copy prints an answer as it is.
func (t *terminal) copy(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	resp, err := t.door.open(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(t.stdout, resp.Body); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	return nil
}

// sums prints the table; names that are not there are dashes.
func (t *terminal) sums(c costs) error {
	w := tabwriter.NewWriter(t.stdout, 0, 0, 2, ' ', 0)
	line := func(names []string, s tasks.CostSum) {
		in := s.Usage.Input + s.Usage.CacheRead + s.Usage.CacheCreation
		fmt.Fprintf(w, "%s\t$%.2f\t%d\t%d\t%d\n", strings.Join(names, "\t"), s.USD, s.Runs, in, s.Usage.Output)
	}
	for _, group := range c.By {
		fmt.Fprint(w, strings.ToUpper(string(group))+"\t")
	}
	fmt.Fprintln(w, "COST\tRUNS\tTOKENS IN\tOUT")
	names := make([]string, len(c.By))
	for _, row := range c.Rows {
		for i, group := range c.By {
			names[i] = cmp.Or(strings.ReplaceAll(plain(row.Name(group)), "\t", " "), "-")
			if row.Other && group != tasks.ByDay {
				names[i] = "(other)"
			}
		}
		line(names, row.CostSum)
	}
	clear(names)
	names[0] = "all"
	line(names, c.Total)
	if err := w.Flush(); err != nil {
		return err
	}
	if c.More > 0 {
		say(t.stderr, "%d more rows are in the sums; -csv has all\n", c.More)
	}
	if c.LeftOut != nil {
		say(t.stderr, "$%.2f of %d runs is not in here: there was no room to note who they were for\n", c.LeftOut.USD, c.LeftOut.Runs)
	}
	return nil
}
