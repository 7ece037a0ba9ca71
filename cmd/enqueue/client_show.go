package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/errand-fleet/errand/internal/legible"
)

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
