package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"
	"sync"

	"github.com/errand-fleet/errand/cmd/internal/wire"
	"github.com/errand-fleet/errand/config"
)

// headroom is memory that is asked for and never touched, so that it costs none: it only counts as kept. An event leaves nothing but garbage
// behind, and a front door that keeps little would collect it many times a second, for a tenth of its CPU. With this, some 25 MB more of it
// gather first, however much is kept, while a GOGC above 100 would let each page that is open cost several times what it keeps.
const headroom = 24 << 20

// run is the whole command; it returns the exit code.
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
		say(w.stderr, "enqueue serve: %v; it takes none, settings are in the environment\n", err)
		return int(misused)
	}
	c, err := wire.Load(w.getenv, config.RoleFrontdoor)
	if err == nil {
		kept := make([]byte, headroom)
		defer runtime.KeepAlive(kept)
		err = serve(wire.Signals(ctx), c, w.stdout, w.stderr, wire.Options{Process: w.process})
	}
	return code(err, w.stderr)
}

// serve is the front door of a fleet.
func serve(ctx context.Context, c config.Config, stdout, stderr io.Writer, o wire.Options) (err error) {
	log := wire.Logger(stderr, c, false)
	if err := wire.Private(log); err != nil {
		return err
	}
	parts, err := wire.New(c, log, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, parts.Close()) }()
	if err := parts.Greet(ctx); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
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
	var serving sync.WaitGroup
	var served error
	serving.Go(func() { defer stop(); served = wire.Serve(ctx, l, door, func() { _ = door.Close() }, log) })
	if err = parts.Await(ctx); err != nil { // Redis came later than the door, and is open: until this look, events may have been stored there
		stop()
	}
	serving.Wait()
	return errors.Join(err, served)
}
