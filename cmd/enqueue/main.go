// Command enqueue is the front door and its client: `enqueue serve` serves webhooks, API and console, and the other
// commands call that API. Run `enqueue help` for the list.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/cmd/internal/wire"
	"github.com/errand-fleet/errand/config"
)

func main() {
	agent.KeeperMain()
	_, _ = agent.MakePrivate() // every command may have secrets in its environment; serve reports a failure
	os.Exit(run(context.Background(), os.Args[1:], world{
		getenv: os.Getenv, environ: os.Environ(), stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		notify: notifySignals, process: true,
	}))
}

// run runs the command and returns the exit code.
func run(ctx context.Context, args []string, w world) int {
	if len(args) == 0 || args[0] != "serve" {
		return client(ctx, args, w)
	}
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	switch rest, err := parse(flags, args[1:]); {
	case errors.Is(err, flag.ErrHelp):
		return client(ctx, []string{"help", "serve"}, w)
	case err == nil && len(rest) > 0:
		err = fmt.Errorf("unexpected argument %q", rest[0])
		fallthrough
	case err != nil:
		printf(w.stderr, "enqueue serve: %v; serve takes no arguments, configure it with environment variables\n", err)
		return int(exitUsage)
	}
	c, err := wire.Load(w.getenv, config.RoleFrontdoor)
	if err == nil {
		if w.getenv("GOGC") == "" { // events leave only garbage: collect it less often than usual
			debug.SetGCPercent(200)
		}
		err = serve(wire.Signals(ctx), c, w.stdout, w.stderr, wire.Options{Process: w.process})
	}
	return exitCode(err, w.stderr)
}

// serve runs the front door of a fleet until ctx ends.
func serve(ctx context.Context, c config.Config, stdout, stderr io.Writer, o wire.Options) (err error) {
	parts, err := wire.Start(ctx, c, wire.Logger(stderr, c), o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, parts.Close()) }()
	door, err := parts.FrontDoor(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, door.Close()) }()
	l, err := wire.Listen(ctx, c.HTTP.Addr, "ERRAND_HTTP_ADDR")
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "errand listens at http://%s\n", l.Addr())
	return parts.ServeDuring(ctx, l, door, func() { _ = door.Close() }, func(ctx context.Context) error {
		<-ctx.Done()
		return nil
	})
}
