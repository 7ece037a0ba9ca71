package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/errand-fleet/errand/internal/legible"
	"github.com/errand-fleet/errand/tasks"
)

const logsHelp = `
The log has everything. With -f: what the agent does and says, from the
beginning to the end, whichever machine runs the task; the exit code says how
it ended (enqueue help). On a terminal Ctrl-C asks, as in enqueue chat -follow.
`

func logsCommand(t *terminal, flags *flag.FlagSet) func(context.Context, []string) error {
	follow := flags.Bool("f", false, "follow what the task does, from its beginning to its end")
	raw := flags.Bool("json", false, "print JSON: the lines of the CLI; with -f an event per line and the end")
	return func(ctx context.Context, args []string) error {
		id, err := oneID(args)
		if err != nil {
			return err
		}
		if *follow {
			w := t.newWatch(id, t.stdout, *raw)
			w.teller.stamps = true
			return w.run(ctx, "")
		}
		path := "/api/tasks/" + id + "/log"
		if *raw {
			return t.copy(ctx, path+"?raw=1")
		}
		resp, err := t.door.open(ctx, http.MethodGet, path, nil)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		return t.print(resp.Body, legible.Text)
	}
}

// json prints JSON: as it came, but to a person's terminal without what that would obey.
func (t *terminal) json(text []byte) error {
	if t.stdout.TTY() {
		text = []byte(legible.JSON(string(text)))
	}
	if _, err := t.stdout.Write(text); err != nil {
		return fmt.Errorf("print JSON: %w", err)
	}
	return nil
}

// print copies a text line by line, each as fit makes it.
func (t *terminal) print(r io.Reader, fit func(string) string) error {
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadString('\n')
		if _, err := io.WriteString(t.stdout, fit(line)); err != nil {
			return fmt.Errorf("print log: %w", err)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read log: %w", err)
		}
	}
}

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
