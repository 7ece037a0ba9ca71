package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/cmd/internal/assemble"
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
	var errs []error
	for i, group := range checkGroups(c.CredentialsHere()) {
		c.Routing.Credentials = group
		runner, err := assemble.NewRunner(c, slog.New(slog.DiscardHandler))
		if err != nil {
			return err
		}
		if i == 0 { // which is that of the machine
			if h := runner.Health(ctx); !h.OK {
				return fmt.Errorf("check the model: %s: %s", h.Problem, h.Remedy)
			}
		}
		errs = append(errs, checkGroup(ctx, c, runner, dir, stdout))
	}
	return errors.Join(errs...)
}

// checkGroups returns the credentials for each task: each subscription alone, because only the CLI may ask with it, and
// all others together. They are for every run: the task is for no repository and no person.
func checkGroups(list []config.Credential) (groups [][]config.Credential) {
	var others []config.Credential
	for _, one := range list {
		one.Repositories, one.People = nil, nil
		if one.OAuthToken != "" {
			groups = append(groups, []config.Credential{one})
		} else {
			others = append(others, one)
		}
	}
	if len(others) > 0 || len(list) == 0 { // one in the environment
		groups = slices.Insert(groups, 0, others)
	}
	return groups
}

// checkGroup asks with each credential of a group, and runs the task with one of them.
func checkGroup(ctx context.Context, c config.Config, runner *agent.Runner, dir string, stdout io.Writer) error {
	who := ""
	if list := c.Routing.Credentials; len(list) > 0 && list[0].OAuthToken != "" {
		who = "credential " + list[0].Name + ": "
	} else if err := checkCredentials(ctx, c, runner, stdout); err != nil {
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
		return fmt.Errorf("check the model: %s%w\n%s", who, failure, strings.TrimSpace(failure.Remedy))
	}
	if err != nil {
		return fmt.Errorf("check the model: %s%w", who, err)
	}
	fmt.Fprintf(stdout, "ok: %s%s answers\n", who, res.Model)
	return nil
}

// checkCredentials asks the model with each of several credentials, because the task has only one of them.
func checkCredentials(ctx context.Context, c config.Config, runner *agent.Runner, stdout io.Writer) error {
	if len(c.Routing.Credentials) == 0 {
		return nil
	}
	bad := 0
	for _, f := range assemble.CheckCredentials(ctx, runner, c.Model.Name) {
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
