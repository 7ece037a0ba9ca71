package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"
)

func listCommand(t *terminal, flags *flag.FlagSet) func(context.Context, []string) error {
	state := flags.String("state", "", "only those that are waiting, running, absorbed or ended")
	raw := flags.Bool("json", false, "print the API's own answer")
	return func(ctx context.Context, args []string) error {
		if len(args) > 0 {
			return errUsage
		}
		path := "/api/tasks"
		if *state != "" {
			path += "?state=" + url.QueryEscape(*state)
		}
		var page struct{ Tasks []task }
		b, err := t.door.call(ctx, http.MethodGet, path, &page)
		if err != nil {
			return err
		}
		if *raw {
			_, err := t.stdout.Write(b)
			return err
		}
		return t.table(page.Tasks)
	}
}

func (t *terminal) table(all []task) error {
	w := tabwriter.NewWriter(t.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tSTATE\tSOURCE\tWHO\tAGE\tCOST\tTASK")
	for _, v := range all {
		cost := ""
		if v.Ending != nil && v.Ending.CostUSD() > 0 {
			cost = fmt.Sprintf("$%.2f", v.Ending.CostUSD())
		}
		fields := []string{
			v.Task.ID, v.state(), v.Task.Source, v.Task.Actor, time.Since(v.Created).Truncate(time.Second).String(), cost, v.Title,
		}
		for i, f := range fields {
			fields[i] = strings.ReplaceAll(plain(f), "\t", " ")
		}
		fmt.Fprintln(w, strings.Join(fields, "\t"))
	}
	return w.Flush()
}

func showCommand(t *terminal, _ *flag.FlagSet) func(context.Context, []string) error {
	return func(ctx context.Context, args []string) error {
		id, err := t.oneID(args)
		if err != nil {
			return err
		}
		var v task
		if _, err := t.door.call(ctx, http.MethodGet, "/api/tasks/"+id, &v); err != nil {
			return err
		}
		return t.describe(v)
	}
}

func (t *terminal) describe(v task) error {
	w := tabwriter.NewWriter(t.stdout, 0, 0, 2, ' ', 0)
	fact := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%s\t%s\n", name, strings.ReplaceAll(plain(value), "\n", " "))
		}
	}
	fact("task", v.Task.ID)
	fact("state", v.state())
	fact("in the run of", v.Into)
	fact("asked by", v.Task.Actor+", "+v.Task.Source)
	fact("thread", v.Task.Thread)
	fact("where", v.Task.Repo+v.Task.Dir)
	fact("created", v.Created.Local().Format(time.DateTime))
	fact("waits", v.Why)
	if !v.At.IsZero() {
		fact("not before", v.At.Local().Format(time.DateTime))
	}
	fact("worker", v.Worker)
	if v.Ending != nil {
		fact("run", v.Ending.Footer())
		fact("published", v.Ending.Note())
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, q := range v.Questions {
		say(t.stdout, "\n? %s\n", plain(q.Text))
		for i, o := range q.Options {
			say(t.stdout, "  %d. %s\n", i+1, plain(o))
		}
		say(t.stdout, "  answer with: enqueue answer -question %s %s YOUR WORDS\n", plain(q.Key), plain(v.Task.ID))
	}
	texts := []string{"> " + strings.ReplaceAll(v.Task.Prompt, "\n", "\n> "), v.Sentence}
	if v.Ending != nil {
		texts = append(texts, v.Ending.Said())
	}
	for _, text := range texts {
		if text = strings.TrimSpace(plain(text)); text != "" {
			say(t.stdout, "\n%s\n", text)
		}
	}
	return nil
}

func cancelCommand(t *terminal, _ *flag.FlagSet) func(context.Context, []string) error {
	return t.change("cancel")
}

func retryCommand(t *terminal, _ *flag.FlagSet) func(context.Context, []string) error {
	return t.change("retry")
}

// change asks for something to be done with a task, and says how it is then.
func (t *terminal) change(what string) func(context.Context, []string) error {
	return func(ctx context.Context, args []string) error {
		id, err := t.oneID(args)
		if err != nil {
			return err
		}
		var v task
		if _, err := t.door.call(ctx, http.MethodPost, "/api/tasks/"+id+"/"+what, &v); err != nil {
			return err
		}
		state := v.state()
		if v.State == "running" && v.Cancel != "" {
			state += ", and will stop within seconds"
		}
		say(t.stdout, "%s is %s\n", id, plain(state))
		return nil
	}
}
