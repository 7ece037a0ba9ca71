package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/errand-fleet/errand/agent/internal/egress"
	"github.com/errand-fleet/errand/agent/internal/gateway"
	"github.com/errand-fleet/errand/agent/internal/keeper"
	"github.com/errand-fleet/errand/agent/internal/protocol"
	"github.com/errand-fleet/errand/agent/internal/session"
)

// Script is a command that runs where an agent has worked, as a tool of the agent would: with the same environment, in
// the same sandbox and under a keeper. It has no gateway, so it cannot ask the model.
type Script struct {
	ID    string   // marks its processes, as that of a Spec: no run with that ID may be active
	Dir   string   // where it runs: absolute, exists
	Files string   // a further directory that it may write; empty: none
	Reads []string // as in a Spec
	Repo  string   // as in a Spec
	Also  []Also   // likewise

	Environment

	Line  string        // run by bash
	Limit time.Duration // maximum time; 0: none
}

// Scripted is the result of a Script.
type Scripted struct {
	Outcome  Outcome // Done: it succeeded; Failed: it did not; Limit; Stopped: the context ended
	ExitCode int     // -1 if a signal ended it
	Signal   string  // name of that signal
	Output   string  // last lines of stdout and stderr, at most 100, redacted
	Duration time.Duration
	Stuck    int           // processes that could not be killed, and may still change files
	Egress   *EgressReport // nil: it has not tried to reach another host, or shares the machine's network
}

// maxRefusedShown bounds the refused hosts in the output of a script.
const maxRefusedShown = 5

// scriptFile is the name of the script in the run's directory: the configured line must not be in an argument list.
const scriptFile = "script"

// Script runs s until it ends, ctx ends or its limit is reached, and returns when all its processes are dead. The
// error, an *Error, means that nothing ran. TERM precedes KILL by three fifths of Config.Grace.
func (r *Runner) Script(ctx context.Context, s Script) (Scripted, error) {
	if ctx.Err() != nil {
		return Scripted{Outcome: Stopped, ExitCode: -1}, nil
	}
	if _, active := r.active.LoadOrStore(s.ID, nil); active {
		return Scripted{}, NewError(ClassInternal, "run "+s.ID+" is already active")
	}
	defer r.active.Delete(s.ID)
	dirs, err := session.Make(r.cfg.TempDir)
	if err != nil {
		return Scripted{}, NewError(ClassWorkspace, err.Error())
	}
	defer func() { r.removeDirs(s.ID, dirs) }()
	spec := Spec{
		ID: s.ID, Dir: s.Dir, Files: s.Files, Reads: s.Reads, Repo: s.Repo, Also: s.Also, Environment: s.Environment,
		Profile: Write, script: true,
	}
	place, e := r.place(ctx, spec, cmp.Or(onPath("bash", r.getenv("PATH")), "/bin/bash"), &dirs)
	if e != nil && ctx.Err() != nil {
		return Scripted{Outcome: Stopped, ExitCode: -1}, nil
	}
	if e != nil {
		return Scripted{}, e
	}
	spec.ownNetwork = place.OwnNetwork
	if err := r.trust(spec, dirs); err != nil {
		return Scripted{}, NewError(ClassWorkspace, err.Error())
	}
	// One pipe for both, so that the order of the output is kept.
	if err := os.WriteFile(filepath.Join(dirs.Root, scriptFile), []byte("exec 2>&1\n"+s.Line+"\n"), 0o600); err != nil {
		return Scripted{}, NewError(ClassWorkspace, fmt.Sprintf("write the script: %v", err))
	}
	began := time.Now()
	order := keeper.Order{
		Path: place.Program, Dir: s.Dir, Env: r.environment(spec, dirs.Inside(), gateway.Access{}),
		Args: []string{"bash", filepath.Join(dirs.Inside().Root, scriptFile)}, RunDir: dirs.Root,
	}
	if spec.ownNetwork {
		order.Ports = r.ports(spec, false)
	}
	disk := r.newDiskWatch(spec, dirs.Root)
	defer disk.beginWithin(ctx, r.diskPatience)()
	p, err := r.start(ctx, spec, place, order)
	if err != nil {
		if ctx.Err() != nil {
			return Scripted{Outcome: Stopped, ExitCode: -1}, nil
		}
		return Scripted{}, startFailure(err, s.Dir)
	}
	var proxy *egress.Proxy
	if len(p.Listeners) > 0 {
		proxy = r.network.Open(func(string, ...any) {}) // the result has it
		defer proxy.Close()
		proxy.Begin(r.allowed(spec))
		serve(order.Ports, p.Listeners, nil, proxy)
	}
	res := r.watchScript(ctx, s, p, disk)
	res.Duration, res.Egress = time.Since(began), proxy.Report(r.cfg.Redactor)
	return res.withRefusals(), nil
}

// withRefusals adds the refused connections to the output.
func (s Scripted) withRefusals() Scripted {
	if s.Egress != nil {
		for _, refused := range s.Egress.Refused[:min(len(s.Egress.Refused), maxRefusedShown)] {
			s.Output += fmt.Sprintf("\n[refused a connection to %s, %s]", refused.Host, refused.Why)
		}
	}
	return s
}

// watchScript reads the output of a script until all its processes are dead.
func (r *Runner) watchScript(ctx context.Context, s Script, p *keeper.Process, disk *diskWatch) Scripted {
	_ = p.Stdin.Close()
	var out protocol.Tail
	var read sync.WaitGroup
	for _, pipe := range []*os.File{p.Stdout, p.Stderr} {
		read.Go(func() {
			defer pipe.Close()
			protocol.ReadText(pipe, r.cfg.Redactor, out.Add)
		})
	}
	quiet := make(chan struct{})
	go func() {
		read.Wait()
		close(quiet)
	}()
	if s.Limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, s.Limit, ErrLimit)
		defer cancel()
	}
	ctx, end := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { disk.run(ctx, p, end) })
	stopped := false
	select {
	case <-p.Done():
	case <-ctx.Done():
		stopped = true
		p.Term(r.cfg.Grace * 3 / 5)
	}
	r.waitAll(s.ID, p, quiet, func(text string) { r.log.Warn("script does not end", "run", s.ID, "why", text) })
	end(nil)
	watch.Wait()
	tooMuch, isTooMuch := errors.AsType[diskError](context.Cause(ctx))
	res := Scripted{
		Outcome: Failed, ExitCode: p.Exit.Code, Signal: p.Exit.Signal, Output: out.String(), Stuck: p.Exit.Stuck,
	}
	if p.Exit.Processes > 0 {
		res.Output += fmt.Sprintf("\n[ended: it had %d processes and threads, more than a run may have]",
			p.Exit.Processes)
	}
	if p.Exit.Memory > 0 {
		res.Output += fmt.Sprintf("\n[ended: it had %d MiB of memory, more than a run may have]", p.Exit.Memory>>20)
	}
	if isTooMuch {
		res.Output += fmt.Sprintf("\n[ended: it has %s, more than a run may]", tooMuch.added())
	}
	switch {
	case p.Exit.Code == 0 && !p.Exit.Stopped:
		res.Outcome = Done // even if the limit was reached at the same time
	case p.Exit.Silence > 0:
		res.Outcome = Stopped // the worker was suspended, which is not the fault of the script
	case stopped && errors.Is(context.Cause(ctx), ErrLimit):
		res.Outcome = Limit
	case stopped && !isTooMuch:
		res.Outcome = Stopped
	}
	return res
}
