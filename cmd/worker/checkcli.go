package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/cmd/internal/assemble"
	"github.com/errand-fleet/errand/config"
)

// checkCLI says how the CLI of this machine differs from the one that errand is tested with.
func checkCLI(ctx context.Context, c config.Config, stdout io.Writer) error {
	runner, err := assemble.NewRunner(c, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	tested, err := agent.Tested()
	if err != nil {
		return err
	}
	now, err := runner.Surface(ctx)
	if err != nil {
		return fmt.Errorf("check the CLI: %w", err)
	}
	fmt.Fprintf(stdout, "the CLI is version %s; errand is tested with %s\n", now.Version, tested.Version)
	for _, difference := range now.Since(tested) {
		fmt.Fprintln(stdout, "  "+difference)
	}
	return nil
}
