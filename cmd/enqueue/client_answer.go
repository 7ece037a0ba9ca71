package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/errand-fleet/errand/internal/legible"
	"github.com/errand-fleet/errand/tasks"
)

// answerCommand tells a task what it wants to know. The first answer stands, so what is printed may be somebody else's.
func answerCommand(t *terminal, flags *flag.FlagSet) func(context.Context, []string) error {
	question := flags.String("question", "", "the `key` of the question, where several are open; enqueue show lists them")
	raw := flags.Bool("json", false, "print the API's own answer")
	return func(ctx context.Context, args []string) error {
		if len(args) < 2 {
			return misused
		}
		id, err := oneID(args[:1])
		if err != nil {
			return err
		}
		body, err := json.Marshal(map[string]string{"question": *question, "answer": strings.Join(args[1:], " ")})
		if err != nil {
			return fmt.Errorf("marshal answer: %w", err)
		}
		ctx, cancel := context.WithTimeout(ctx, callLimit)
		defer cancel()
		resp, err := t.door.open(ctx, http.MethodPost, "/api/tasks/"+id+"/answer", body, "Content-Type", "application/json")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		var a tasks.Answer
		text, err := io.ReadAll(resp.Body)
		if err == nil {
			err = json.Unmarshal(text, &a)
		}
		switch {
		case err != nil:
			return fmt.Errorf("read answer: %w", err)
		case *raw:
			err = t.json(text)
		case a.Expired:
			say(t.stdout, "too late: the agent went on without an answer\n")
		default:
			say(t.stdout, "%s answered: %s\n", legible.Line(a.By), legible.Text(a.Text))
		}
		if a.Expired {
			return failed
		}
		return err
	}
}
