package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent/internal/egress"
	"github.com/errand-fleet/errand/agent/internal/gateway"
	"github.com/errand-fleet/errand/agent/internal/keeper"
	"github.com/errand-fleet/errand/agent/internal/runlog"
	"github.com/errand-fleet/errand/agent/internal/sandbox"
	"github.com/errand-fleet/errand/agent/internal/session"
	"github.com/errand-fleet/errand/internal/transcript"
	"github.com/google/uuid"
)

// Run runs the CLI on s until its session has nothing left to do, or until ctx ends or a limit of s is reached. It
// returns when every process of the run is dead. The error, an *Error, means that nothing ran; everything that ran has
// a Result. If ctx has ended before, Run starts nothing, and the outcome is Stopped as for any run that ctx ends.
func (r *Runner) Run(ctx context.Context, s Spec, h Host) (Result, error) {
	if e := r.check(&s); e != nil {
		return Result{}, e
	}
	if ctx.Err() != nil {
		return *notStarted(s.Resume), nil
	}
	if _, active := r.active.LoadOrStore(s.ID, nil); active { // the ID identifies the processes of a run
		return Result{}, NewError(ClassInternal, "run "+s.ID+" is already active")
	}
	defer r.active.Delete(s.ID)
	cli, e := r.cli()
	if e != nil {
		return Result{}, e
	}
	if !s.Claimed {
		release, err := runlog.Lock(r.cfg.LogDir, s.ID)
		if err != nil {
			return Result{}, NewError(ClassInternal, fmt.Sprintf("start run %s: %v", s.ID, err))
		}
		defer release()
	}
	started := time.Now()
	for _, line := range s.instructed(r.cfg.Redactor) {
		s.Header = append(slices.Clip(s.Header), "instructions "+line)
	}
	redactor := r.cfg.Redactor.ForRun()
	log, err := runlog.Open(r.cfg.LogDir, s.ID, s.Header, redactor, started)
	if err != nil {
		return Result{}, NewError(ClassInternal, err.Error()) // another worker may have room for a log
	}
	in := &invocation{cli: cli, spec: s, resume: s.Resume, host: h, log: log, redactor: redactor}
	res, e := r.runOnce(ctx, in)
	if why := notResumed(res, e); why != nil && in.resume != nil && ctx.Err() == nil {
		log.Note(time.Now(), "! %s; beginning a new conversation", why.Message)
		in.resume = nil
		res, e = r.runOnce(ctx, in)
	}
	if e != nil {
		log.Note(time.Now(), "! %s", e.Message)
		_ = log.Close()
		return Result{}, e
	}
	res.Started, res.Duration, res.Fresh = started, time.Since(started), s.Resume != nil && in.resume == nil
	closeLog(log, res)
	return *res, nil
}

// notResumed returns why a run could not continue its conversation, or nil. It returns nil if the model was asked,
// because work must not be repeated.
func notResumed(res *Result, failed *Error) *Error {
	if failed == nil && res.Outcome == Failed && res.Turns == 0 {
		failed = res.Error
	}
	if failed == nil || failed.Class != ClassSession || res.API != nil && res.API.Calls > 0 {
		return nil
	}
	return failed
}

// notStarted returns the result of a run whose context ended before its start. The conversation is unchanged.
func notStarted(resume *Session) *Result {
	res := &Result{Outcome: Stopped, ExitCode: -1, Started: time.Now()}
	if resume != nil {
		res.Session = *resume
	}
	return res
}

func closeLog(log *runlog.Log, res *Result) {
	verdict := string(res.Outcome)
	if res.Error != nil {
		verdict += " (" + res.Error.Error() + ")"
	}
	log.Line(fmt.Sprintf("# %s after %s, exit %d%s, $%.4f, %d turns",
		verdict, res.Duration.Round(time.Millisecond), res.ExitCode, strings.TrimRight(" "+res.Signal, " "),
		res.CostUSD, res.Turns))
	if err := log.Close(); err != nil {
		res.Resources.LogErr = err.Error()
	}
}

// invocation is one execution of the CLI for a run.
type invocation struct {
	cli    string
	spec   Spec
	resume *Session // the conversation to continue; nil: a new one
	host   Host
	log    *runlog.Log

	redactor *Redactor // also hides the parts of secrets that the agent has said
}

// runOnce runs the CLI once. Its frame and that of Run stay on the stack while the run lives, so they have only
// pointers to what is large.
func (r *Runner) runOnce(ctx context.Context, in *invocation) (*Result, *Error) {
	l, e := r.launch(ctx, in)
	if e != nil && ctx.Err() != nil {
		return notStarted(in.spec.Resume), nil
	}
	if e != nil {
		return &Result{}, e
	}
	defer l.removeDirs()
	l.hosted.Go(l.saveCheckpoints)
	l.hosted.Go(func() {
		l.disk.begin(l.ctx)
		l.disk.run(l.ctx, l.process, l.cancel)
	})
	finished, cause := l.converse(ctx)
	l.wait()
	l.closeNetwork()
	if l.gate.Overspent() && (cause == nil || finished) { // the CLI may have shown the refusal as an answer
		finished, cause = false, gateway.ErrSpent
	}
	return l.result(finished, cause), nil
}

// launch starts the CLI, and the goroutines that read its output. The caller waits for the end of the run, closes its
// gateway and proxy and removes its directories.
func (r *Runner) launch(ctx context.Context, given *invocation) (*liveRun, *Error) {
	in := *given // its own copy, with the model that it starts with
	in.spec.Model = r.model.StartModel(in.spec.Model)
	c, e := r.command(ctx, in)
	if c == nil {
		return nil, e
	}
	l := r.newLiveRun(in, c)
	in.spec.ownNetwork = c.place.OwnNetwork
	c.proxy.Begin(r.allowed(in.spec))
	if len(in.spec.Secrets) > 0 && !in.spec.ownNetwork {
		const text = "The run gets no secrets, because its egress list is not in force: it shares the machine's network"
		in.host.Event(Event{Time: time.Now(), Kind: Notice, Text: text})
	}
	l.read()
	return l, nil
}

// command is a started CLI, with everything that was fixed at its start. It has been sent nothing.
type command struct {
	id      string // marks its processes: that of its run
	order   keeper.Order
	place   sandbox.Place
	dirs    session.Dirs
	session string // ID of the conversation
	gate    *gateway.Gateway
	proxy   *egress.Proxy // nil: none

	credentials []string // names of those that it may use

	process *keeper.Process
	notes   *runlog.Log // set before gateway and proxy accept requests
}

// closeNetwork closes what the worker serves to a CLI.
func (c *command) closeNetwork() {
	c.gate.Close()
	c.proxy.Close()
}

// note writes to the log of the CLI's run.
func (c *command) note(format string, args ...any) { c.notes.Note(time.Now(), "! "+format, args...) }

// command starts the CLI, or returns nil. Its proxy refuses requests until it begins.
func (r *Runner) command(ctx context.Context, in invocation) (_ *command, e *Error) {
	s := &in.spec
	dirs, err := session.Make(r.cfg.TempDir)
	if err != nil {
		return nil, NewError(ClassWorkspace, err.Error())
	}
	c := &command{id: s.ID, session: uuid.NewString(), notes: in.log}
	defer func() {
		if c.process == nil {
			c.closeNetwork()
			r.removeDirs(s.ID, dirs)
		}
	}()
	if c.place, e = r.place(ctx, *s, in.cli, &dirs); e != nil {
		return nil, e
	}
	c.dirs = dirs
	if in.resume != nil {
		if e := restoreSession(dirs, *in.resume, s.start()); e != nil {
			return nil, e
		}
		c.session = in.resume.ID
	}
	if c.credentials, e = credentialsFor(*s, r.cfg.Credentials); e != nil {
		return nil, e
	}
	gated := gateway.Run{Model: s.Model, MaxUSD: s.MaxUSD, Note: c.note, Credentials: c.credentials}
	if c.place.OwnNetwork {
		gated.Addr = fmt.Sprintf("127.0.0.1:%d", sandbox.GatewayPort)
	}
	if c.gate, err = r.model.Open(gated); err != nil {
		return nil, NewError(ClassInternal, err.Error())
	}
	if c.order, err = r.order(c, in, c.place); err != nil {
		return nil, NewError(ClassWorkspace, err.Error())
	}
	p, err := r.start(ctx, *s, c.place, c.order)
	if err != nil {
		return nil, startFailure(err, s.start())
	}
	if len(p.Listeners) > 0 {
		c.proxy = r.network.Open(c.note)
		serve(c.order.Ports, p.Listeners, c.gate, c.proxy)
	}
	c.process = p
	return c, nil
}

// order returns how the CLI of an invocation is started in a place, with the directories and the gateway of c.
func (r *Runner) order(c *command, in invocation, p sandbox.Place) (keeper.Order, error) {
	in.spec.ownNetwork = p.OwnNetwork
	if err := r.trust(in.spec, c.dirs); err != nil {
		return keeper.Order{}, err
	}
	args, err := r.arguments(p.Program, in.spec, in.resume, c.session, c.dirs)
	if err != nil {
		return keeper.Order{}, err
	}
	way := r.model.Access(c.gate)
	o := keeper.Order{
		Path: p.Program, Args: args, Dir: in.spec.start(), Env: r.environment(in.spec, c.dirs.Inside(), way),
		RunDir: c.dirs.Root, Secret: way.Credential.Piped(), Sealed: true,
	}
	if p.OwnNetwork {
		o.Ports = r.ports(in.spec, true)
	}
	return o, nil
}

// start adds the limits of a run and its services to an order, and starts its program under a keeper.
func (r *Runner) start(ctx context.Context, s Spec, p sandbox.Place, o keeper.Order) (*keeper.Process, error) {
	o.MaxProcesses, o.MaxMemory = r.cfg.MaxProcesses, r.cfg.MaxMemory
	if err := r.withServices(&o, s, p); err != nil {
		return nil, err
	}
	o.OrphanGrace, o.WorkerTimeout = min(keeper.OrphanGrace, r.cfg.Grace), r.silentLimit
	process, err := r.keepers.Start(ctx, o, p.Keeper)
	if err != nil {
		keeper.SweepRun(s.ID) // a keeper that died during the start may have started something
	}
	return process, err
}

// place returns where a run is started, and notes in dirs how it sees its own directory.
func (r *Runner) place(ctx context.Context, s Spec, program string, dirs *session.Dirs) (sandbox.Place, *Error) {
	p, err := r.sandbox.Prepare(ctx, sandbox.Run{
		Program: program, Root: dirs.Root, Write: append(s.further(), s.Dir), Read: s.Reads,
		Layers: s.Layers, Dir: s.Dir, SeenAs: s.SeenAs,
		OwnNetwork: s.script || r.model.Gated(), // without a gateway the CLI has to reach the model by itself
	})
	unavailable, ok := errors.AsType[*sandbox.Unavailable](err)
	if ok && unavailable.Busy {
		return p, NewError(ClassStart, unavailable.Error())
	}
	if ok {
		return p, lacking(noSandbox, unavailable.Problem, unavailable.Remedy)
	}
	if errors.Is(err, sandbox.ErrProgram) {
		return p, NewError(ClassCLIMissing, err.Error())
	}
	if err != nil {
		return p, NewError(ClassWorkspace, err.Error())
	}
	dirs.InsideRoot, dirs.InsideHome = p.Root, p.Home
	return p, nil
}

// What a worker may lack, for the author of a task.
const (
	noSandbox = "sandbox to run the agent in"
	noKeeper  = "working program to supervise the agent"
)

// lacking is the error of a run for which the worker lacks something.
func lacking(what, problem, remedy string) *Error {
	e := NewError(ClassConfig, problem+": "+remedy)
	e.User, e.Remedy = "The worker has no "+what+". An operator must look at its health.", remedy
	return e
}

// restoreSession writes a saved session to where the CLI looks for it. ClassSession says that it cannot be resumed.
func restoreSession(dirs session.Dirs, s Session, workDir string) *Error {
	a, err := transcript.Unpack(s.Data)
	if err != nil {
		return NewError(ClassSession, fmt.Sprintf("read session %s: %v", s.ID, err))
	}
	if err := dirs.Restore(a, s.ID, workDir); err != nil {
		return NewError(ClassWorkspace, "restore session: "+err.Error())
	}
	return nil
}

func (r *Runner) removeDirs(run string, dirs session.Dirs) {
	if err := dirs.Remove(); err != nil {
		r.log.Warn("remove run directory", "run", run, "err", err)
	}
}
