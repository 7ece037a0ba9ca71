package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/errand-fleet/errand/cmd/enqueue/internal/term"
	"github.com/errand-fleet/errand/internal/legible"
	"github.com/errand-fleet/errand/tasks"
)

func listCommand(t *terminal, flags *flag.FlagSet) func(context.Context, []string) error {
	filters := []struct{ flag, parameter, about string }{
		{"state", "state", "only tasks in this `state`: waiting, running, absorbed or ended"},
		{"source", "source", "only tasks from this `source`: slack, github or chat"},
		{"repo", "repository", "only tasks for this repository, `owner/name`"},
		{"person", "person", "only tasks of this `person`: a name in people: of errand.yaml, U02ABC, or slack/U02ABC"},
		{"channel", "channel", "only tasks from this `channel`: C02ABC, or slack/C02ABC"},
		{"ending", "ending", "only tasks with this `ending`: answered, failed, cancelled, …"},
		{"text", "text", "only tasks with these `words` in the request or the ID"},
		{"before", "before", "only tasks older than the one with this `ID`"},
	}
	values := map[string]*string{}
	for _, f := range filters {
		values[f.parameter] = flags.String(f.flag, "", f.about)
	}
	values["limit"] = numberFlag(flags, "limit", "at most this `number`, up to 200; default 50")
	raw := flags.Bool("json", false, "print the API's JSON")
	return func(ctx context.Context, args []string) error {
		if len(args) > 0 {
			return exitUsage
		}
		q := url.Values{}
		for name, value := range values {
			if *value != "" {
				q.Set(name, *value)
			}
		}
		var page struct {
			Tasks []task
			Next  string
		}
		b, err := t.api.call(ctx, http.MethodGet, "/api/tasks?"+q.Encode(), nil, &page)
		if err != nil {
			return err
		}
		if *raw {
			return t.printJSON(b)
		}
		t.printTasks(page.Tasks, time.Now())
		switch {
		case page.Next != "":
			printf(t.stderr, "For older tasks add -before %s\n", legible.Line(page.Next))
		case len(page.Tasks) == 0:
			printf(t.stderr, "No tasks.\n")
		}
		return nil
	}
}

// printTasks prints a table of tasks and cuts titles to fit.
func (t *terminal) printTasks(all []task, now time.Time) {
	list := newTable("ID", "STATE", "SOURCE", "WHO", "AGE", "COST", "TASK")
	list.spare, list.prose = []string{"SOURCE", "WHO", "COST", "AGE"}, true // the ID contains the source
	list.columns[1].style = func(row int) term.Style { return stateStyle(all[row]) }
	for _, v := range all {
		list.add(v.Task.ID, v.state(), v.Task.Source, cmp.Or(v.Person, v.Task.Actor), legible.Age(now.Sub(v.Created)), cost(v), v.Title+waitReason(v))
	}
	list.print(t.stdout)
}

// waitReason returns why a task waits, in parentheses, or an empty string.
func waitReason(v task) string {
	if v.State != "waiting" || v.Why == "" {
		return ""
	}
	return " (" + v.Why + ")"
}

func stateStyle(v task) term.Style {
	switch {
	case v.Ending == nil && v.State == "running":
		return term.Cyan
	case v.Ending == nil:
		return term.Yellow
	case v.Ending.Kind == tasks.Answered:
		return term.Green
	}
	return term.Red
}

func cost(v task) string {
	if v.Ending == nil || v.Ending.CostUSD() == 0 {
		return ""
	}
	return dollars(v.Ending.CostUSD())
}

// dollars formats an amount. A positive amount is never shown as zero.
func dollars(usd float64) string {
	if usd > 0 && usd < 0.005 {
		return "<$0.01"
	}
	return fmt.Sprintf("$%.2f", usd)
}

func showCommand(t *terminal, flags *flag.FlagSet) func(context.Context, []string) error {
	raw := flags.Bool("json", false, "print the API's JSON")
	return func(ctx context.Context, args []string) error {
		id, err := oneID(args)
		if err != nil {
			return err
		}
		var v task
		text, err := t.api.call(ctx, http.MethodGet, "/api/tasks/"+id, nil, &v)
		if err != nil {
			return err
		}
		if *raw {
			return t.printJSON(text)
		}
		t.printTask(v)
		return nil
	}
}

// printTask prints everything about a task.
func (t *terminal) printTask(v task) {
	const widest = len("in the run of")
	fact := func(name, value string) {
		if value != "" {
			printf(t.stdout, "%-*s  %s\n", widest, name, legible.Line(value))
		}
	}
	at := func(name string, when time.Time) {
		if !when.IsZero() {
			fact(name, when.Local().Format(time.DateTime))
		}
	}
	fact("task", v.Task.ID)
	fact("state", v.state())
	fact("in the run of", v.Into)
	if v.Position > 0 {
		fact("before it", fmt.Sprintf("%d in its thread", v.Position))
	}
	fact("asked by", v.Asker()+", "+v.Task.Source)
	fact("thread", v.Task.Thread)
	fact("where", cmp.Or(v.Task.Repo+v.Task.Dir, "an empty directory"))
	at("created", v.Created)
	at("started", v.Started)
	at("ended", v.Ended)
	fact("waits", v.Why)
	at("not before", v.At)
	fact("worker", v.Worker)
	if v.Ending != nil {
		fact("run", v.Ending.Footer())
		fact("published", v.Ending.Note())
	}
	for _, q := range v.Questions {
		printf(t.stdout, "\n? %s\n", legible.Text(q.Text))
		for _, line := range answerHelp(v.Task.ID, q) {
			printf(t.stdout, "%s\n", line)
		}
	}
	texts := []string{"> " + strings.ReplaceAll(v.Task.Prompt, "\n", "\n> "), v.Sentence}
	if v.Ending != nil {
		texts = append(texts, indentJSON(v.Ending.Said()))
	}
	for _, text := range texts {
		if text = strings.TrimSpace(legible.Text(text)); text != "" {
			printf(t.stdout, "\n%s\n", text)
		}
	}
}

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
