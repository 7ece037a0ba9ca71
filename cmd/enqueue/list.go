package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/errand-fleet/errand/cmd/enqueue/internal/term"
	"github.com/errand-fleet/errand/internal/display"
)

func listCommand(t *terminal) *cobra.Command {
	c := &cobra.Command{Use: "list", Short: "List tasks, newest first"}
	query := parameterFlags(
		c.Flags(), person, channel, repository,
		parameter{
			flag: "state", name: "state", about: "only tasks in this `state`: waiting, running, absorbed or ended",
		},
		parameter{
			flag: "source", name: "source",
			about: "only tasks from this `source`: slack, github, chat, schedule or hook",
		},
		parameter{flag: "pool", name: "pool", about: "only tasks of this `pool`, such as default"},
		parameter{
			flag: "ending", name: "ending", about: "only tasks with this `ending`: answered, failed, cancelled, …",
		},
		parameter{
			flag: "class", name: "class",
			about: "only tasks of this `class`: interactive, review, background or maintenance",
		},
		parameter{flag: "days", name: "days", about: "only tasks of the last `days`"},
		parameter{flag: "text", name: "text", about: "only tasks with these `words` in the request or the ID"},
		parameter{flag: "before", name: "before", about: "only tasks older than the one with this `ID`"},
		parameter{
			flag: "limit", name: "limit", about: "at most this `number`, up to 200; default 50",
		},
	)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return show(c.Context(), t, "GET /api/tasks?"+query.Encode(), nil, func(page taskPage) {
			t.printTasks(page.Tasks, time.Now())
			query.Del("limit") // it selects nothing
			switch {
			case page.Next != "":
				printf(t.stderr, "For older tasks add --before %s\n", display.Line(page.Next))
			case len(page.Tasks) == 0 && len(query) > 0:
				printf(t.stderr, "No task matches.\n")
			case len(page.Tasks) == 0:
				printf(t.stderr, "No tasks.\n")
			}
		})
	}
	return c
}

// Flags of several commands.
var (
	person = parameter{
		flag: "person", name: "person",
		about: "only this `person`: a name in people: of errand.yaml, U02ABC, or slack/U02ABC",
	}
	channel    = parameter{flag: "channel", name: "channel", about: "only this `channel`: C02ABC, or slack/C02ABC"}
	repository = parameter{flag: "repo", name: "repository", about: "only this repository, `owner/name`"}
)

// printTasks prints a table of tasks and cuts titles to fit.
func (t *terminal) printTasks(all []task, now time.Time) {
	list := newTable("ID", "STATE", "SOURCE", "WHO", "AGE", "COST", "TASK")
	list.spare, list.prose = []string{"SOURCE", "WHO", "COST", "AGE"}, true
	list.columns[1].style = func(row int) term.Style { return stateStyle(all[row]) }
	for _, v := range all {
		age := display.Age(now.Sub(v.Created))
		list.add(display.TaskID(v.Task.ID), v.state(), v.Task.Source, v.name(), age, cost(v), v.Title+trouble(v))
	}
	list.print(t.stdout)
}

// trouble returns why a task waits or its answer is not where it belongs, in parentheses, or an empty string.
func trouble(v task) string {
	why := v.Unposted
	if v.State == "waiting" {
		why = v.Why
	}
	if why == "" {
		return ""
	}
	return " (" + why + ")"
}

func stateStyle(v task) term.Style {
	switch {
	case v.Ending == nil && v.State == "running":
		return term.Cyan
	case v.Ending == nil:
		return term.Yellow
	case v.Ending.Kind == "answered":
		return term.Green
	}
	return term.Red
}

func cost(v task) string {
	if v.Ending == nil || v.Ending.cost() == 0 {
		return ""
	}
	return display.Dollars(v.Ending.cost())
}

func showCommand(t *terminal) *cobra.Command {
	c := &cobra.Command{Use: "show ID", Short: "Show a task and its answer"}
	return t.aboutTask(c, func(ctx context.Context, id string, _ []string) error {
		return show(ctx, t, "GET /api/tasks/"+id, nil, t.printTask)
	})
}

// diffCommand prints the diff as it is for programs such as git apply, and in colour and without control characters for
// people.
func diffCommand(t *terminal) *cobra.Command {
	c := &cobra.Command{
		Use: "diff ID", Short: "Print what a task has changed",
		Annotations: map[string]string{"json": "the diff as it is, also on a terminal"},
	}
	return t.aboutTask(c, func(ctx context.Context, id string, _ []string) error {
		return t.copyResponse(ctx, "/api/tasks/"+id+"/diff", func(line string) string {
			if t.raw || !t.stdout.TTY() {
				return line
			}
			text, ended := strings.CutSuffix(line, "\n")
			text = t.stdout.Paint(diffStyle(text), display.Code(text))
			if ended {
				text += "\n"
			}
			return text
		})
	})
}

// diffStyle returns the colour of a line of a diff.
func diffStyle(line string) term.Style {
	for _, s := range []struct {
		begins string
		style  term.Style
	}{
		{"diff ", term.Bold},
		{"index ", term.Bold},
		{"--- ", term.Bold},
		{"+++ ", term.Bold},
		{"@@ ", term.Cyan},
		{"+", term.Green},
		{"-", term.Red},
		{"#", term.Yellow},
	} {
		if strings.HasPrefix(line, s.begins) {
			return s.style
		}
	}
	return term.Plain
}

// answerCommand answers a question. The first answer counts, so the printed one may be another person's.
func answerCommand(t *terminal) *cobra.Command {
	c := &cobra.Command{Use: "answer ID WORDS…", Short: "Answer a task's question"}
	question := c.Flags().String("question", "", "the question's `key`, if several are open; enqueue show lists them")
	return t.aboutTask(c, func(ctx context.Context, id string, words []string) error {
		body := map[string]string{"question": *question, "answer": strings.Join(words, " ")}
		a, err := shown(ctx, t, "POST /api/tasks/"+id+"/answer", body, func(a row) {
			if a.has("expired") {
				printf(t.stdout, "too late: the agent continued without an answer\n")
				return
			}
			printf(t.stdout, "%s answered: %s\n", display.Line(a.text("by")), display.Text(a.text("text")))
		})
		if a.has("expired") {
			return exitFailed
		}
		return err
	})
}

// changeCommand returns a command that changes a task by a request without a body.
func changeCommand(t *terminal, action, about string) *cobra.Command {
	c := &cobra.Command{Use: action + " ID", Short: about}
	return t.aboutTask(c, func(ctx context.Context, id string, _ []string) error {
		return show(ctx, t, "POST /api/tasks/"+id+"/"+action, nil, func(v task) {
			printf(t.stdout, "%s is %s\n", display.TaskID(v.Task.ID), display.Line(v.state()))
		})
	})
}

// fact prints a fact, if it is known.
func (t *terminal) fact(name, value string) {
	if value != "" {
		printf(t.stdout, "%-*s  %s\n", len("in the run of"), name, display.Line(value))
	}
}

// moment returns a time to the second, with the offset of the local zone; empty for the zero time.
func moment(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.Local().Format("2006-01-02 15:04:05 -0700")
}

// printTask prints everything about a task.
func (t *terminal) printTask(v task) {
	t.fact("task", display.TaskID(v.Task.ID))
	t.fact("state", v.state())
	if v.Into != "" {
		t.fact("in the run of", display.TaskID(v.Into))
	}
	if v.Position > 0 {
		t.fact("position", fmt.Sprintf("%d in its line", v.Position))
	}
	t.fact("asked by", fmt.Sprintf("%s (%s/%s)", v.name(), v.Task.Source, v.Task.Actor))
	t.fact("thread", v.Task.Thread)
	repositories := strings.Join(append([]string{v.Task.Repo}, v.Task.Also...), ", ")
	t.fact("where", cmp.Or(repositories+v.Task.Dir, "an empty directory"))
	t.fact("created", moment(v.Created))
	t.fact("started", moment(v.Started))
	t.fact("ended", moment(v.Ended))
	t.fact("waits", v.Why)
	t.fact("trouble", v.Unposted)
	t.fact("not before", moment(v.At))
	t.fact("pool", v.Pool)
	t.fact("worker", v.Worker)
	t.fact("run", v.Footer)
	for _, one := range v.Notes {
		t.fact("published", one)
	}
	for _, q := range v.Questions {
		printf(t.stdout, "\n? %s\n", display.Text(q.Text))
		for _, line := range answerHelp(display.TaskID(v.Task.ID), q) {
			printf(t.stdout, "%s\n", line)
		}
	}
	texts := []string{display.Text("> " + strings.ReplaceAll(v.Task.Prompt, "\n", "\n> ")), display.Text(v.comment())}
	if v.Ending != nil {
		texts = append(texts, v.answer())
	}
	for _, text := range texts {
		if text = strings.TrimSpace(text); text != "" {
			printf(t.stdout, "\n%s\n", text)
		}
	}
}

func costsCommand(t *terminal) *cobra.Command {
	c := &cobra.Command{Use: "costs", Short: "Show the costs of runs"}
	flags := c.Flags()
	query := parameterFlags(
		flags, person, channel, repository,
		parameter{flag: "model", name: "model", about: "only this `model`"},
		parameter{flag: "credential", name: "credential", about: "only this `credential` for the model"},
		parameter{flag: "days", name: "days", about: "the last `days` including today; default 30"},
		parameter{flag: "from", name: "from", about: "from this `day` on, such as 2026-01-31"},
		parameter{flag: "to", name: "to", about: "up to this `day`"},
	)
	by := flags.String("by", "",
		"comma-separated `columns` to group by: day, person, channel, repository, model, credential; default day")
	sheet := flags.Bool("csv", false, "print CSV")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if t.raw && *sheet {
			return usageError{errors.New("choose one of --json and --csv")}
		}
		if *by != "" {
			query["by"] = strings.Split(strings.ReplaceAll(*by, " ", ""), ",")
		}
		if *sheet {
			query.Set("format", "csv")
			return t.copyResponse(c.Context(), "/api/costs?"+query.Encode(), t.escapeJSON)
		}
		return show(c.Context(), t, "GET /api/costs?"+query.Encode(), nil, t.printCosts)
	}
	return c
}

// printCosts prints the table, with dashes for unknown names.
func (t *terminal) printCosts(c row) {
	by := strings.Split(c.text("by"), ",")
	heads := strings.Split(strings.ToUpper(c.text("by")), ",")
	list := newTable(append(heads, "COST", "RUNS", "TOKENS IN", "OUT")...)
	list.spare = []string{"OUT", "TOKENS IN", "RUNS"}
	add := func(cells []string, r row) {
		used, _ := r["usage"].(map[string]any)
		u := row(used)
		in := u.number("input_tokens") + u.number("cache_read_input_tokens") + u.number("cache_creation_input_tokens")
		list.add(append(cells, display.Dollars(r.number("cost_usd")), r.text("runs"), fmt.Sprintf("%.0f", in),
			u.text("output_tokens"))...)
	}
	for _, r := range c.rows("rows") {
		names := make([]string, len(by))
		for i, group := range by {
			names[i] = cmp.Or(r.text(group), "-")
			if r.has("other") && group != "day" {
				names[i] = "(other)"
			}
		}
		add(names, r)
	}
	total, left := c["total"].(map[string]any), c["left_out"]
	names := make([]string, len(by))
	names[0] = "all"
	add(names, total)
	list.print(t.stdout)
	if c.has("more") {
		printf(t.stderr, "%s more rows are included in the totals; --csv prints all\n", c.text("more"))
	}
	if left, some := left.(map[string]any); some {
		printf(t.stderr, "%s of %s runs is missing: the store was full\n",
			display.Dollars(row(left).number("cost_usd")), row(left).text("runs"))
	}
}
