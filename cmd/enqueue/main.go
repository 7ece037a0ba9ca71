// Command enqueue is the front door and its client: `enqueue serve` serves webhooks, API and console, and the other
// commands call that API. Run `enqueue help` for the list.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"

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

func serveCommand(t *terminal) *cobra.Command {
	return &cobra.Command{
		Use: "serve", Short: "Serve webhooks, API and console", GroupID: ofServer.ID,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := wire.Load(t.getenv, config.RoleFrontdoor)
			if err != nil {
				return err
			}
			if t.getenv("GOGC") == "" { // events leave only garbage: collect it less often than usual
				debug.SetGCPercent(200)
			}
			o := wire.Options{Process: t.process}
			return serve(wire.Signals(cmd.Context()), c, t.world.stdout, t.world.stderr, o)
		},
	}
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
