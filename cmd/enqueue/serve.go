package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/errand-fleet/errand/cmd/internal/wire"
	"github.com/errand-fleet/errand/config"
)

// run is the whole command; it returns the exit code.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	if len(args) == 0 || args[0] != "serve" {
		return client(ctx, args, getenv, stdout, stderr)
	}
	flags := flag.NewFlagSet("enqueue serve", flag.ContinueOnError)
	flags.SetOutput(stderr)
	if err := flags.Parse(args[1:]); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	c, err := config.Load(getenv, config.RoleFrontdoor)
	if err == nil {
		err = serve(ctx, c, stdout, stderr)
	}
	if err != nil {
		fmt.Fprintln(stderr, "enqueue:", err)
		return 1
	}
	return 0
}

// serve is the front door of a fleet.
func serve(ctx context.Context, c config.Config, stdout, stderr io.Writer) (err error) {
	log := wire.Logger(stderr, c, false)
	if err := wire.Private(log); err != nil {
		return err
	}
	parts, err := wire.New(c, log, wire.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, parts.Close()) }()
	parts.Greet(ctx)
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
	return wire.Serve(ctx, l, door, func() { _ = door.Close() }, log)
}
