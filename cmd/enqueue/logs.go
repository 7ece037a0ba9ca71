package main

import (
	"context"
	"flag"
	"net/http"
	"strings"

	"github.com/errand-fleet/errand/internal/legible"
	"github.com/errand-fleet/errand/tasks"
)

const logsHelp = `
The log is complete. With -f: the agent's text and tools from beginning to end,
on whichever machine the task runs; the exit code tells how it ended (enqueue
help). On a terminal Ctrl-C asks, as in enqueue chat -follow.
`

func logsCommand(t *terminal, flags *flag.FlagSet) func(context.Context, []string) error {
	follow := flags.Bool("f", false, "follow the task from its beginning to its end")
	raw := flags.Bool("json", false, "print JSON: the CLI's lines, or with -f one event per line and the end")
	return func(ctx context.Context, args []string) error {
		id, err := oneID(args)
		if err != nil {
			return err
		}
		if *follow {
			w := t.newWatch(id, t.stdout, *raw)
			w.printer.timestamps = true
			return w.run(ctx, "")
		}
		path := "/api/tasks/" + id + "/log"
		if *raw {
			return t.copyResponse(ctx, path+"?raw=1")
		}
		resp, err := t.api.open(ctx, http.MethodGet, path, nil)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		return t.printLines(resp.Body, legible.Text)
	}
}

// answerCommand answers a question. The first answer counts, so the printed one may be another person's.
func answerCommand(t *terminal, flags *flag.FlagSet) func(context.Context, []string) error {
	question := flags.String("question", "", "the question's `key`, if several are open; enqueue show lists them")
	raw := flags.Bool("json", false, "print the API's JSON")
	return func(ctx context.Context, args []string) error {
		if len(args) < 2 {
			return exitUsage
		}
		id, err := oneID(args[:1])
		if err != nil {
			return err
		}
		var a tasks.Answer
		body := map[string]string{"question": *question, "answer": strings.Join(args[1:], " ")}
		text, err := t.postTask(ctx, id+"/answer", body, &a)
		switch {
		case err != nil:
			return err
		case *raw:
			err = t.printJSON(text)
		case a.Expired:
			printf(t.stdout, "too late: the agent continued without an answer\n")
		default:
			printf(t.stdout, "%s answered: %s\n", legible.Line(a.By), legible.Text(a.Text))
		}
		if a.Expired {
			return exitFailed
		}
		return err
	}
}

// changeCommand returns a command that changes a task by a request without a body.
func changeCommand(action string) prepareFunc {
	return func(t *terminal, flags *flag.FlagSet) func(context.Context, []string) error {
		raw := flags.Bool("json", false, "print the API's JSON")
		return func(ctx context.Context, args []string) error {
			id, err := oneID(args)
			if err != nil {
				return err
			}
			var v task
			text, err := t.postTask(ctx, id+"/"+action, nil, &v)
			switch {
			case err != nil:
				return err
			case *raw:
				return t.printJSON(text)
			}
			printf(t.stdout, "%s is %s\n", id, legible.Line(v.state()))
			return nil
		}
	}
}
