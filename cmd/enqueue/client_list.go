package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/cmd/enqueue/internal/term"
	"github.com/errand-fleet/errand/internal/legible"
	"github.com/errand-fleet/errand/tasks"
)

func listCommand(t *terminal, flags *flag.FlagSet) func(context.Context, []string) error {
	// A flag is called as people type it, a parameter as the API has it.
	filters := []struct{ flag, parameter, about string }{
		{"state", "state", "only those in this `state`: waiting, running, absorbed or ended"},
		{"source", "source", "only those from this `source`: slack, github or chat"},
		{"repo", "repository", "only those about this repository, `owner/name`"},
		{"person", "person", "only those of this `person`: U02ABC, or slack/U02ABC"},
		{"ending", "ending", "only those that ended in this `way`: answered, failed, cancelled, …"},
		{"text", "text", "only those with these `words` in the request or in the ID"},
		{"limit", "limit", "at most this `number`, up to 200; default 50"},
		{"before", "before", "only those older than the task with this `ID`"},
	}
	values := map[string]*string{}
	for _, f := range filters {
		values[f.parameter] = flags.String(f.flag, "", f.about)
	}
	raw := flags.Bool("json", false, "print the API's own answer")
	return func(ctx context.Context, args []string) error {
		if len(args) > 0 {
			return misused
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
		b, err := t.door.call(ctx, http.MethodGet, "/api/tasks?"+q.Encode(), &page)
		if err != nil {
			return err
		}
		if *raw {
			_, err := t.stdout.Write(b)
			return err
		}
		t.table(page.Tasks, time.Now())
		switch {
		case page.Next != "":
			say(t.stderr, "There may be older ones: add -before %s\n", legible.Line(page.Next))
		case len(page.Tasks) == 0:
			say(t.stderr, "There are none.\n")
		}
		return nil
	}
}

// column is one of a table.
type column struct {
	name  string
	cells []string
	width int
}

// table prints tasks in columns. On a terminal each is one line of it: where there is little room, columns are left out that matter less, and
// titles are cut.
func (t *terminal) table(all []task, now time.Time) {
	names := []string{"ID", "STATE", "SOURCE", "WHO", "AGE", "COST", "TASK"}
	columns := make([]column, len(names))
	for i, name := range names {
		columns[i] = column{name: name, cells: []string{name}, width: len(name)}
	}
	for _, v := range all {
		for i, cell := range []string{v.Task.ID, v.state(), v.Task.Source, v.Task.Actor, age(now.Sub(v.Created)), cost(v), v.Title} {
			c := &columns[i]
			cell = legible.Line(cell)
			c.cells, c.width = append(c.cells, cell), max(c.width, term.Cells(cell))
		}
	}
	columns = fit(columns, t.stdout.Width())
	for row := range len(all) + 1 {
		var line strings.Builder
		for i, c := range columns {
			cell := c.cells[row]
			if i < len(columns)-1 {
				cell = term.Pad(cell, c.width) + "  "
			} else if t.stdout.TTY() {
				cell = term.Cut(cell, c.width)
			}
			if row == 0 {
				cell = t.stdout.Paint(term.Dim, cell)
			} else if c.name == "STATE" {
				cell = t.stdout.Paint(styleOf(all[row-1]), cell)
			}
			line.WriteString(cell)
		}
		say(t.stdout, "%s\n", strings.TrimRight(line.String(), " "))
	}
}

// enough is how much of a title should be left on a narrow terminal.
const enough = 20

// fit makes columns fit into a width; 0: any.
func fit(columns []column, width int) []column {
	if width == 0 {
		return columns
	}
	left := func() int { // for the last one
		n := width
		for _, c := range columns[:len(columns)-1] {
			n -= c.width + 2
		}
		return n
	}
	last := &columns[len(columns)-1]
	for _, spare := range []string{"SOURCE", "WHO", "COST", "AGE"} { // the ID has the source
		if left() >= min(enough, last.width) {
			break
		}
		columns = slices.DeleteFunc(columns, func(c column) bool { return c.name == spare })
		last = &columns[len(columns)-1]
	}
	last.width = max(1, min(last.width, left()))
	return columns
}

func styleOf(v task) term.Style {
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
	switch {
	case v.Ending == nil || v.Ending.CostUSD() == 0:
		return ""
	case v.Ending.CostUSD() < 0.005:
		return "<$0.01"
	}
	return fmt.Sprintf("$%.2f", v.Ending.CostUSD())
}

// age is a duration as precise as anybody wants to know.
func age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}
