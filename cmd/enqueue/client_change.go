package main

import (
	"context"
	"flag"
	"net/http"

	"github.com/errand-fleet/errand/internal/legible"
)

// changeCommand asks for something to be done with a task, and says how it is then.
func changeCommand(what string) func(*terminal, *flag.FlagSet) func(context.Context, []string) error {
	return func(t *terminal, flags *flag.FlagSet) func(context.Context, []string) error {
		raw := flags.Bool("json", false, "print the API's own answer")
		return func(ctx context.Context, args []string) error {
			id, err := oneID(args)
			if err != nil {
				return err
			}
			var v task
			text, err := t.door.call(ctx, http.MethodPost, "/api/tasks/"+id+"/"+what, &v)
			switch {
			case err != nil:
				return err
			case *raw:
				err := t.json(text)
				return err
			}
			say(t.stdout, "%s is %s\n", id, legible.Line(v.state()))
			return nil
		}
	}
}
