package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"

	"github.com/errand-fleet/errand/internal/legible"
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
