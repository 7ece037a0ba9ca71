package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
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
	// A flag is called as people type it, a parameter as the API has it.
	filters := []struct{ flag, parameter, about string }{
		{"state", "state", "only those in this `state`: waiting, running, absorbed or ended"},
		{"source", "source", "only those from this `source`: slack, github or chat"},
		{"repo", "repository", "only those about this repository, `owner/name`"},
		{"person", "person", "only those of this `person`: a name in people: of errand.yaml, U02ABC, or slack/U02ABC"},
		{"channel", "channel", "only those from this `channel`: C02ABC, or slack/C02ABC"},
		{"ending", "ending", "only those that ended in this `way`: answered, failed, cancelled, …"},
		{"text", "text", "only those with these `words` in the request or in the ID"},
		{"before", "before", "only those older than the task with this `ID`"},
	}
	values := map[string]*string{}
	for _, f := range filters {
		values[f.parameter] = flags.String(f.flag, "", f.about)
	}
	values["limit"] = numberFlag(flags, "limit", "at most this `number`, up to 200; default 50")
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
			err := t.json(b)
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

// table prints tasks, the titles as far as there is room.
func (t *terminal) table(all []task, now time.Time) {
	list := newTable("ID", "STATE", "SOURCE", "WHO", "AGE", "COST", "TASK")
	list.spare, list.prose = []string{"SOURCE", "WHO", "COST", "AGE"}, true // the ID has the source
	list.columns[1].style = func(row int) term.Style { return styleOf(all[row]) }
	for _, v := range all {
		list.add(v.Task.ID, v.state(), v.Task.Source, cmp.Or(v.Person, v.Task.Actor), legible.Age(now.Sub(v.Created)), cost(v), v.Title+waits(v))
	}
	list.print(t.stdout)
}

// waits is why a task waits, behind its title; empty for any other.
func waits(v task) string {
	if v.State != "waiting" || v.Why == "" {
		return ""
	}
	return " (" + v.Why + ")"
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
	if v.Ending == nil || v.Ending.CostUSD() == 0 {
		return ""
	}
	return dollars(v.Ending.CostUSD())
}

// dollars is an amount; one that is there is never nothing.
func dollars(usd float64) string {
	if usd > 0 && usd < 0.005 {
		return "<$0.01"
	}
	return fmt.Sprintf("$%.2f", usd)
}

func showCommand(t *terminal, flags *flag.FlagSet) func(context.Context, []string) error {
	raw := flags.Bool("json", false, "print the API's own answer")
	return func(ctx context.Context, args []string) error {
		id, err := oneID(args)
		if err != nil {
			return err
		}
		var v task
		text, err := t.door.call(ctx, http.MethodGet, "/api/tasks/"+id, &v)
		if err != nil {
			return err
		}
		if *raw {
			err := t.json(text)
			return err
		}
		t.describe(v)
		return nil
	}
}

func (t *terminal) describe(v task) {
	const widest = len("in the run of")
	fact := func(name, value string) {
		if value != "" {
			say(t.stdout, "%-*s  %s\n", widest, name, legible.Line(value))
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
	fact("where", cmp.Or(v.Task.Repo+v.Task.Dir, "a directory of its own"))
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
		say(t.stdout, "\n? %s\n", legible.Text(q.Text))
		for _, line := range answers(v.Task.ID, q) {
			say(t.stdout, "%s\n", line)
		}
	}
	texts := []string{"> " + strings.ReplaceAll(v.Task.Prompt, "\n", "\n> "), v.Sentence}
	if v.Ending != nil {
		texts = append(texts, indented(v.Ending.Said()))
	}
	for _, text := range texts {
		if text = strings.TrimSpace(legible.Text(text)); text != "" {
			say(t.stdout, "\n%s\n", text)
		}
	}
}

// indented is an answer in a form, such as that of a review, as people can read it; any other as it is.
func indented(answer string) string {
	var b bytes.Buffer
	if json.Indent(&b, []byte(answer), "", "  ") != nil {
		return answer
	}
	return b.String()
}
