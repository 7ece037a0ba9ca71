package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// patience bounds the trial, which takes about ten seconds.
const patience = 3 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run executes the command and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	flags.SetOutput(stderr)
	root := flags.String("root", "", "`directory` at which the image's files are mounted")
	compose := flags.String("compose", "docker-compose.yml",
		"the Compose `file`, which says how containers are started")
	config := flags.String("config", "", "`file` with what buildah inspect prints of the image")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := try(ctx, *root, *config, *compose, stdout); err != nil {
		fmt.Fprintln(stderr, "image:", err)
		return 1
	}
	return 0
}

// try runs the trial in a new directory.
func try(ctx context.Context, root, config, compose string, stdout io.Writer) (err error) {
	img, err := readImage(root, config)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "errand-image-")
	if err != nil {
		return fmt.Errorf("create directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	t, err := newTrial(ctx, img, compose, dir, stdout)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	return t.play(ctx)
}
