package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"strings"

	"github.com/errand-fleet/errand/tasks"
)

// answerCommand tells a task what it wants to know. The first answer stands, so what is printed may be somebody else's.
func answerCommand(t *terminal, flags *flag.FlagSet) func(context.Context, []string) error {
	question := flags.String("question", "", "the `key` of the question, where several are open; enqueue show lists them")
	return func(ctx context.Context, args []string) error {
		if len(args) < 2 {
			return errUsage
		}
		id, err := t.oneID(args[:1])
		if err != nil {
			return err
		}
		body, err := json.Marshal(map[string]string{"question": *question, "answer": strings.Join(args[1:], " ")})
		if err != nil {
			return fmt.Errorf("marshal answer: %w", err)
		}
		resp, err := t.door.open(ctx, http.MethodPost, "/api/tasks/"+id+"/answer", body, "Content-Type", "application/json")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		var a tasks.Answer
		if err := json.NewDecoder(resp.Body).Decode(&a); err != nil {
			return fmt.Errorf("read answer: %w", err)
		}
		if a.Expired {
			say(t.stdout, "too late: the agent went on without an answer\n")
			return errSaid
		}
		say(t.stdout, "%s answered: %s\n", plain(a.By), plain(a.Text))
		return nil
	}
}
