package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/bench/fakecli"
	"github.com/errand-fleet/errand/bench/session"
)

// order is the instruction to a worker process on stdin. The worker writes its result to stdout.
type order struct {
	Job     string        `json:"job"`              // read, idle, crowd, victim
	Dir     string        `json:"dir"`              // for logs
	Keeper  string        `json:"keeper,omitempty"` // the program errand-keeper
	Session string        `json:"session,omitempty"`
	Profile string        `json:"profile,omitempty"`
	Runs    int           `json:"runs,omitempty"`
	Lines   int           `json:"lines,omitempty"`
	Loops   int           `json:"loops,omitempty"`  // busy programs beside the runs of a crowd
	Beside  time.Duration `json:"beside,omitempty"` // how long these last
	Grace   time.Duration `json:"grace,omitempty"`
}

// work is the main function of a worker process. It is a separate process because its memory and CPU time are measured.
func work(in io.Reader, out io.Writer) error {
	var o order
	if err := json.NewDecoder(in).Decode(&o); err != nil {
		return fmt.Errorf("read order: %w", err)
	}
	runner, err := newRunner(o)
	if err != nil {
		return err
	}
	ctx := context.Background()
	var found any
	switch o.Job {
	case "read":
		found, err = readSession(ctx, runner, o)
	case "idle":
		found, err = idleRuns(ctx, runner, o)
	case "crowd":
		found, err = crowdOfRuns(ctx, runner, o)
	case "victim":
		err = victim(ctx, runner, json.NewEncoder(out))
	default:
		err = fmt.Errorf("%q is no job", o.Job)
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(found)
}

// newRunner returns a worker's runner with the fake CLI.
func newRunner(o order) (*agent.Runner, error) {
	cli, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	return agent.New(agent.Config{
		CLI: cli, Keeper: o.Keeper, LogDir: o.Dir, Grace: o.Grace, Redactor: agent.NewRedactor(session.Secrets()...),
		Env: map[string]string{fakecli.RoleVariable: fakecli.CLI, "GORACE": "atexit_sleep_ms=0"},
	})
}

// spec returns a run whose prompt is an instruction to the fake CLI.
func spec(id, text string) agent.Spec {
	return agent.Spec{ID: id, Dir: "/", Prompt: agent.Message{Text: text}, Profile: agent.Read}
}

// startWorker starts a worker process and returns after its result. The caller must wait for the process.
func (b *bench) startWorker(ctx context.Context, o order, found any) (*exec.Cmd, error) {
	o.Dir, o.Keeper = b.dir, b.Keeper
	told, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("marshal order: %w", err)
	}
	cmd := exec.CommandContext(ctx, b.self)
	cmd.Env, cmd.Stderr = environment(workerRole), os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	_, err = stdin.Write(told)
	err = errors.Join(err, stdin.Close())
	if err == nil {
		err = json.NewDecoder(stdout).Decode(found)
	}
	if err != nil {
		_ = cmd.Process.Kill() // the keepers end its runs
		return nil, fmt.Errorf("ask worker: %w", errors.Join(err, cmd.Wait()))
	}
	return cmd, nil
}

// ask lets a worker process do a job and end.
func (b *bench) ask(ctx context.Context, o order, found any) error {
	cmd, err := b.startWorker(ctx, o, found)
	if err != nil {
		return err
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("end worker: %w", err)
	}
	return nil
}
