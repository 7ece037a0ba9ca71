package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/errand-fleet/errand/agent/internal/keeper"
	"github.com/google/uuid"

	"github.com/errand-fleet/errand/agent/internal/gateway"
	"github.com/errand-fleet/errand/agent/internal/sandbox"
	"github.com/errand-fleet/errand/agent/internal/session"
)

// Run runs the CLI on s until its session has nothing left to do, or until ctx ends or a limit of s is reached, and returns when
// every process of the run is dead. The error, an *Error, means that nothing ran; whatever did run has a Result. If ctx has ended
// before, nothing is started, and the result says Stopped as it does of any run that ctx has ended.
func (r *Runner) Run(ctx context.Context, s Spec, h Host) (Result, error) {
	if e := r.check(s); e != nil {
		return Result{}, e
	}
	if ctx.Err() != nil {
		return notStarted(s), nil
	}
	if _, taken := r.active.LoadOrStore(s.ID, nil); taken { // a run's processes are known by its ID
		return Result{}, NewError(ClassInternal, "run "+s.ID+" is under way already")
	}
	defer r.active.Delete(s.ID)
	cli, e := r.cli()
	if e != nil {
		return Result{}, e
	}
	started := time.Now()
	log, err := openLog(r.cfg.LogDir, s.ID, s.Header, r.cfg.Redactor, started)
	if err != nil {
		return Result{}, NewError(ClassWorkspace, err.Error())
	}
	resume := s.Resume
	res, e := r.once(ctx, cli, s, resume, h, log)
	if why := unresumed(res, e); why != nil && resume != nil && ctx.Err() == nil {
		log.Note(time.Now(), "! %s; beginning a new conversation", why.Message)
		resume = nil
		res, e = r.once(ctx, cli, s, nil, h, log)
	}
	if e != nil {
		log.Note(time.Now(), "! %s", e.Message)
		_ = log.Close()
		return Result{}, e
	}
	res.Started, res.Duration, res.Fresh = started, time.Since(started), s.Resume != nil && resume == nil
	r.closeLog(log, &res)
	return res, nil
}

// unresumed is why a run did not begin in the conversation it was to go on with, nil if it did: what was done must not be done again.
func unresumed(res Result, failed *Error) *Error {
	if failed == nil && res.Outcome == Failed && res.Turns == 0 {
		failed = res.Error
	}
	if failed == nil || failed.Class != ClassSession || res.API != nil && res.API.Calls > 0 {
		return nil
	}
	return failed
}

// once runs the CLI one time, in the conversation resume or in a new one.
func (r *Runner) once(ctx context.Context, cli string, s Spec, resume *Session, h Host, log *runLog) (Result, *Error) {
	l, e := r.launch(ctx, cli, s, resume, h, log)
	if e != nil {
		return Result{}, e
	}
	if l == nil {
		return notStarted(s), nil
	}
	defer l.clear()
	l.hosted.Go(func() { l.checkpoints(l.dirs, l.session) })
	finished, cause := l.converse(ctx)
	l.wait()
	l.gate.Close()
	if l.gate.Overspent() && (cause == nil || finished) { // the CLI may have made an answer of the refusal before it was stopped
		finished, cause = false, gateway.ErrSpent
	}
	res := l.result(finished, cause, l.gate.Seen())
	res.Session = Session{ID: l.session, Data: l.dirs.Save(l.session)}
	l.settle(&res)
	return res, nil
}

// launch starts the CLI and those who read its output; nil when ctx has ended before it could. The caller waits for its end, closes its
// gate and clears up.
func (r *Runner) launch(ctx context.Context, cli string, s Spec, resume *Session, h Host, log *runLog) (_ *live, e *Error) {
	s.Model = r.model.StartModel(s.Model)
	dirs, err := session.Make(r.cfg.TempDir)
	if err != nil {
		return nil, NewError(ClassWorkspace, err.Error())
	}
	started := false
	defer func() {
		if !started {
			r.remove(s.ID, dirs)
		}
	}()
	place, e := r.place(ctx, s, cli, &dirs)
	if e != nil {
		return nil, e
	}
	id := uuid.NewString()
	if resume != nil {
		if e := restoreSession(dirs, *resume, s.Dir); e != nil {
			return nil, e
		}
		id = resume.ID
	}
	args, err := r.arguments(place.Program, s, resume, id, dirs)
	if err != nil {
		return nil, NewError(ClassWorkspace, err.Error())
	}
	gated := gateway.Run{
		Model: s.Model, MaxUSD: s.MaxUSD, Note: func(format string, args ...any) { log.Note(time.Now(), "! "+format, args...) },
	}
	if place.OwnNetwork {
		gated.Addr = fmt.Sprintf("127.0.0.1:%d", sandbox.GatewayPort)
	}
	gate, err := r.model.Open(gated)
	if err != nil {
		return nil, NewError(ClassInternal, err.Error())
	}
	way := r.model.Access(gate)
	c, err := keeper.Start(ctx, keeper.Order{
		Path: place.Program, Args: args, Env: r.environment(s, dirs.Inside(), way), Dir: s.Dir, GatewayPort: place.GatewayPort(),
		Secret: way.Credential.Piped(), OrphanGrace: min(keeper.OrphanGrace, r.cfg.Grace), RunDir: dirs.Root,
		WorkerTimeout: r.silentLimit, MaxProcesses: r.cfg.MaxProcesses, Sealed: true,
	}, place.Keeper)
	if err != nil {
		keeper.SweepRun(s.ID) // a keeper that died while it was starting may have started something
		gate.Close()
		if ctx.Err() != nil {
			return nil, nil
		}
		return nil, startFailure(err, s.Dir)
	}
	if c.Gateway != nil {
		gate.Serve(c.Gateway)
	}
	started = true
	l := r.supervise(s, resume, h, c, log)
	l.dirs, l.gate, l.session = dirs, gate, id
	l.watch()
	return l, nil
}

// place returns where a run is started, and notes in dirs how it sees its own directory.
func (r *Runner) place(ctx context.Context, s Spec, program string, dirs *session.Dirs) (sandbox.Place, *Error) {
	p, err := r.sandbox.Prepare(ctx, sandbox.Run{
		Program: program, Root: dirs.Root, Write: append(s.further(), s.Dir), Read: s.Reads,
		OwnNetwork: s.Profile == Untrusted && r.model.Gated(), // without a gateway the CLI has to reach the model by itself
	})
	if unavailable, ok := errors.AsType[*sandbox.Unavailable](err); ok {
		return p, noSandbox(unavailable)
	}
	if errors.Is(err, sandbox.ErrProgram) {
		return p, NewError(ClassCLIMissing, err.Error())
	}
	if err != nil {
		return p, NewError(ClassWorkspace, err.Error())
	}
	dirs.InsideRoot = p.Root
	return p, nil
}

// noSandbox is the error of a run that must not start without a sandbox.
func noSandbox(u *sandbox.Unavailable) *Error {
	e := NewError(ClassConfig, u.Error())
	e.User, e.Remedy = "The worker has no sandbox to run the agent in. An operator must look at its health.", u.Remedy
	return e
}

// restoreSession writes a saved session to where the CLI looks for it. ClassSession says that it cannot be resumed.
func restoreSession(dirs session.Dirs, s Session, workDir string) *Error {
	a, err := session.Unpack(s.Data)
	if err != nil {
		return NewError(ClassSession, fmt.Sprintf("read session %s: %v", s.ID, err))
	}
	if err := dirs.Restore(a, s.ID, workDir); err != nil {
		return NewError(ClassWorkspace, "restore session: "+err.Error())
	}
	return nil
}

// clear removes what the run had for itself.
func (l *live) clear() { l.r.remove(l.spec.ID, l.dirs) }

func (r *Runner) remove(run string, dirs session.Dirs) {
	if err := dirs.Remove(); err != nil {
		r.log.Warn("remove run directory", "run", run, "err", err)
	}
}

// notStarted is the result of a run whose caller had changed its mind. The conversation stays as it was.
func notStarted(s Spec) Result {
	res := Result{Outcome: Stopped, ExitCode: -1, Started: time.Now()}
	if s.Resume != nil {
		res.Session = *s.Resume
	}
	return res
}

func (r *Runner) closeLog(log *runLog, res *Result) {
	verdict := string(res.Outcome)
	if res.Error != nil {
		verdict += " (" + res.Error.Error() + ")"
	}
	log.write(fmt.Sprintf("# %s after %s, exit %d%s, $%.4f, %d turns",
		verdict, res.Duration.Round(time.Millisecond), res.ExitCode, strings.TrimRight(" "+res.Signal, " "), res.CostUSD, res.Turns))
	if err := log.Close(); err != nil {
		res.Resources.LogErr = err.Error()
	}
}

// live is a run under way.
type live struct {
	r       *Runner
	spec    Spec
	policy  Policy
	resume  *Session // the conversation that goes on; nil: a new one
	host    Host
	child   *keeper.Process
	log     *runLog
	in      *stdin
	control *control
	stream  *stream
	stderr  tail
	tools   *toolServer // nil without Spec.Tools

	known   callable // what messages may call by name; set before the first is sent
	dirs    session.Dirs
	gate    *gateway.Gateway
	session string // its ID

	idle     chan struct{}  // the session has nothing left to do; capacity 1
	hosted   sync.WaitGroup // calls of Host.Next, Host.Idle and Spec.Checkpoint, and used
	read     sync.WaitGroup // the two readers
	quiet    chan struct{}  // closed when both readers are done: every process of the run is dead
	planning atomic.Bool    // the agent is to change nothing
	pinged   time.Time      // the latest time, by attend
	reminded bool           // of the form of its answer; of the goroutine that asks for more
	words    int            // answers that it had given until then

	ctx    context.Context         // ends, with the first cause, when the run has to
	cancel context.CancelCauseFunc // by whom the run itself ends ctx
}

// supervise makes what a run that has been started needs. It reads nothing yet.
func (r *Runner) supervise(s Spec, resume *Session, h Host, c *keeper.Process, log *runLog) *live {
	now := time.Now()
	l := &live{
		r: r, spec: s, policy: r.policy(s), resume: resume, host: h, child: c, log: log, in: &stdin{f: c.Stdin},
		idle: make(chan struct{}, 1), quiet: make(chan struct{}),
	}
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	l.control = newControl(l.in, l.deaf)
	if len(s.Tools) > 0 {
		l.tools = serveTools(l.ctx, s.Tools, r.cfg.Redactor, l.toolFailed)
	}
	l.stream = &stream{
		dir: s.Dir, redact: r.cfg.Redactor, log: log, emit: h.Event, now: time.Now, resume: resume,
		clock: clock{Heard: now, Active: now}, calls: map[int]*call{}, sent: map[string]bool{}, tools: map[string]string{},
		on: signals{
			Idle:     func() { wake(l.idle) },
			Hopeless: func() { l.cancel(errHopeless) },
			Answered: l.control.Answered,
			Withdrew: l.control.Withdrawn,
			Asked:    l.asked,
		},
	}
	return l
}

// watch starts the goroutines that read the child's output, and heeds the gateway.
func (l *live) watch() {
	l.stream.gate = l.gate
	l.gate.OnOverspent(func() { l.cancel(gateway.ErrSpent) })
	l.read.Go(func() {
		defer l.child.Stdout.Close()
		l.stream.Read(newLines(l.child.Stdout, stdoutPiece), newAssembler(&l.r.spare))
		l.control.Die()
	})
	l.read.Go(func() {
		defer l.child.Stderr.Close()
		l.lastWords(newLines(l.child.Stderr, stderrPiece))
	})
	go func() {
		l.read.Wait()
		close(l.quiet)
	}()
}

func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// answers are those of all turns, but for what an agent said to being reminded of the form: that is the same once more. The stream is locked.
func (l *live) answers() []string {
	all := l.stream.facts.Answers
	if l.words == 0 {
		return all
	}
	return slices.Delete(slices.Clone(all), l.words, min(l.words+1, len(all)))
}

// result puts together what is known once everything has ended.
func (l *live) result(finished bool, cause error, api *API) Result {
	l.stream.mu.Lock()
	defer l.stream.mu.Unlock()
	f := &l.stream.facts
	f.Open = l.stream.clock.Turn
	exit := l.child.Exit
	redact := l.r.cfg.Redactor
	if len(f.Partial) >= maxPartial { // it was cut, perhaps within a secret
		f.Partial = redact.Stream().Write(f.Partial)
	}
	res := Result{
		Text: redact.String(strings.Join(l.answers(), "\n\n")), ExitCode: exit.Code, Signal: exit.Signal, Stderr: l.stderr.String(),
		Model: cmp.Or(f.Answered, f.Model), Turns: f.Turns, API: api, Resources: f.Resources,
	}
	if api != nil { // what binds others is not the CLI's to say: a tool may speak in its place
		f.RateLimit = nil
		if status, resets, ok := api.UsageLimit(); ok {
			f.RateLimit = &wireRateLimit{Status: status, ResetsAt: resets}
		}
	}
	res.Outcome, res.Error = conclude(f, finished, cause, exit, res.Stderr)
	if e := res.Error; e != nil {
		if api != nil && e.Class == ClassOverloaded && api.Unreachable() {
			e.Message += " (" + api.Problem + ")"
		}
		res.RetryAt = retryAt(e.Class, f.RateLimit, api)
		e.until(res.RetryAt)
		e.Message = redact.String(e.Message)
	}
	if res.Outcome == Done && res.Text == "" {
		res.Text = redact.String(strings.TrimSpace(string(f.Partial)))
	}
	if res.Outcome != Done {
		res.Partial = redact.String(strings.TrimSpace(string(f.Partial)))
	}
	if api != nil {
		api.Problem = redact.String(api.Problem)
		for name, value := range api.Limits {
			api.Limits[name] = redact.String(value)
		}
	}
	if f.Last != nil {
		res.StopReason = redact.String(f.Last.StopReason)
		res.Structured = redact.JSON(json.RawMessage(f.Structured))
	}
	res.Resources.CPU, res.Resources.MaxRSS = exit.CPU, exit.MaxRSS
	res.Resources.Swept, res.Resources.Stuck = exit.Swept, exit.Stuck
	return res
}
