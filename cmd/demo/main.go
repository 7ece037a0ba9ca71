// Command demo runs the whole system without any account: it starts fakes of Slack, GitHub and the model, starts the
// real `worker -standalone` against them, sends one mention and one pull request, and prints what happens. `demo
// -once` then exits, successfully only if both answers were posted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/cmd/internal/wire"
)

func main() {
	agent.KeeperMain()
	os.Exit(run(wire.Signals(context.Background()), os.Args[1:], os.Stdout, os.Stderr))
}

// patience bounds the demo with -once, set-up included; it takes about ten seconds.
const patience = 2 * time.Minute

// run runs the command and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(stderr)
	once := flags.Bool("once", false, "end by itself when both answers are posted")
	verbose := flags.Bool("v", false, "show the worker's own log, too")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	log := io.Discard
	if *verbose {
		log = stderr
	}
	if err := show(ctx, *once, stdout, log); err != nil {
		fmt.Fprintln(stderr, "demo:", err)
		return 1
	}
	return 0
}

// show runs the demo.
func show(ctx context.Context, once bool, stdout, log io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "errand-demo-")
	if err != nil {
		return fmt.Errorf("create demo directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s, err := newScene(filepath.Join(dir, "errand.yaml"))
	if err != nil {
		return err
	}
	defer s.close()
	t := &teller{w: stdout, start: time.Now()}
	t.say("errand", "starting the worker against fakes of Slack, GitHub and the model")
	sys, err := startSystem(ctx, s.environment(filepath.Join(dir, "state")), log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sys.stop()) }()
	s.slack.Deliver(sys.base + "/slack/events")
	s.github.Deliver(sys.base + "/github/webhook")

	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := s.mention(limited, sys, t); err != nil {
		return err
	}
	if err := s.pullRequest(limited, sys, t); err != nil {
		return err
	}
	t.say("errand", "both answers are posted")
	if once {
		return nil
	}
	fmt.Fprintf(stdout, "\n  console  %s\n  token    %s\n  queues   %s/queues/\n", sys.console, sys.token, sys.base)
	fmt.Fprint(stdout, "\nThey stay up until Ctrl-C. The console's address opens once, within 15 minutes; later the token does.\n")
	<-ctx.Done()
	fmt.Fprintln(stdout, "\nstopping")
	return nil
}

// teller prints events with the time since the start and their place.
type teller struct {
	w     io.Writer
	start time.Time
}

func (t *teller) say(where, format string, args ...any) {
	fmt.Fprintf(t.w, "%6.1fs  %-8s %s\n", time.Since(t.start).Seconds(), where, fmt.Sprintf(format, args...))
}
