package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/cmd/internal/wire"
	"github.com/errand-fleet/errand/config"
)

// Limits of a check, which costs about a cent: the CLI's own instructions are most of it.
const (
	checkLimit = 3 * time.Minute
	checkUSD   = 0.5
)

// checkModel runs the smallest task on this machine, as a run of the fleet would, and says what the model has answered.
// Unlike the health of a worker, it finds a refused credential, and a region or a model that the account lacks.
func checkModel(ctx context.Context, c config.Config, stdout io.Writer) error {
	dir, err := os.MkdirTemp("", "check")
	if err != nil {
		return fmt.Errorf("check the model: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	c.Paths.State = dir
	runner, err := wire.NewRunner(c, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	if h := runner.Health(ctx, c.Worker.MinClaude); !h.OK {
		return fmt.Errorf("check the model: %s: %s", h.Problem, h.Remedy)
	}
	if err := checkCredentials(ctx, c, runner, stdout); err != nil {
		return err
	}
	res, err := runner.Run(ctx, agent.Spec{
		ID: "check-model", Dir: dir, Prompt: agent.Message{Text: "Reply with the word OK and nothing else."},
		Profile: agent.Read, Model: c.Model.Name, MaxUSD: checkUSD, Limit: checkLimit,
	}, agent.Unattended{})
	if err == nil && res.Error != nil {
		err = res.Error
	}
	if failure, ok := errors.AsType[*agent.Error](err); ok {
		return fmt.Errorf("check the model: %w\n%s", failure, strings.TrimSpace(failure.Remedy))
	}
	if err != nil {
		return fmt.Errorf("check the model: %w", err)
	}
	fmt.Fprintf(stdout, "ok: %s answers\n", res.Model)
	return nil
}

// checkCredentials asks the model with each of several credentials, because the task has only one of them.
func checkCredentials(ctx context.Context, c config.Config, runner *agent.Runner, stdout io.Writer) error {
	if len(c.Routing.Credentials) == 0 {
		return nil
	}
	bad := 0
	for _, f := range wire.CheckCredentials(ctx, runner, c.Model.Name) {
		if f.Why == "" {
			fmt.Fprintf(stdout, "ok: %s\n", f.What)
			continue
		}
		bad++
		fmt.Fprintf(stdout, "%s: %s\n%s\n", f.What, f.Why, f.Remedy)
	}
	if bad > 0 {
		return fmt.Errorf("check the model: %d of the credentials do not work", bad)
	}
	return nil
}
