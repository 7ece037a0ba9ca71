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
			return w.run(ctx)
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
		return t.print(resp.Body)
	}
}

// print copies a log, line by line.
func (t *terminal) print(r io.Reader) error {
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadString('\n')
		if _, err := io.WriteString(t.stdout, legible.Text(line)); err != nil {
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
