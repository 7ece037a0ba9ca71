package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"
)

// Run runs the CLI on s until its session has nothing left to do, or until ctx ends or a limit of s is reached, and returns when
// every process of the run is dead. The error, an *Error, means that nothing ran; whatever did run has a Result.
func (r *Runner) Run(ctx context.Context, s Spec, h Host) (Result, error) {
	if e := r.check(s); e != nil {
		return Result{}, e
	}
	cli, e := r.cli()
	if e != nil {
		return Result{}, e
	}
	dirs, err := makeDirs(r.cfg.TempDir)
	if err != nil {
		return Result{}, NewError(ClassWorkspace, err.Error())
	}
	defer func() {
		if err := dirs.remove(); err != nil {
			r.log.Warn("remove run directory", "run", s.ID, "err", err)
		}
	}()
	session := uuid.NewString()
	if s.Resume != nil {
		session = s.Resume.ID
		if err := dirs.putSession(*s.Resume, s.Dir); err != nil {
			return Result{}, NewError(ClassWorkspace, err.Error())
		}
	}
	started := time.Now()
	log, err := openLog(r.cfg.LogDir, s.ID, s.Header, r.cfg.Redactor, started)
	if err != nil {
		return Result{}, NewError(ClassWorkspace, err.Error())
	}
	c, err := startChild(startOrder{
		Path: cli, Args: arguments(cli, s, session), Env: r.environment(s, dirs), Dir: s.Dir,
		Secret: r.cfg.Credential.piped(), Orphan: min(orphanGrace, r.cfg.Grace), Remove: dirs.Root,
	})
	if err != nil {
		sweepMarked(s.ID) // a keeper that died while it was starting may have started something
		e := startFailure(err)
		log.Note(time.Now(), "! %s", e.Message)
		_ = log.Close()
		return Result{}, e
	}
	live := r.watch(s, h, c, log)
	finished, cause := live.converse(ctx)
	live.wait()
	res := live.result(finished, cause)
	res.Started, res.Duration = started, time.Since(started)
	res.Session = Session{ID: session, Data: dirs.takeSession(session), CostUSD: res.CostUSD, Usage: res.Usage}
	if s.Resume != nil && res.Turns == 0 && res.CostUSD == 0 { // no result: what the conversation had cost before is not forgotten
		res.Session.CostUSD, res.Session.Usage = s.Resume.CostUSD, s.Resume.Usage
	} else if s.Resume != nil && res.CostUSD >= s.Resume.CostUSD { // less when the CLI had nothing to count on from
		res.CostUSD -= s.Resume.CostUSD
		res.Usage = res.Usage.less(s.Resume.Usage)
	}
	r.closeLog(log, &res)
	return res, nil
}

// startFailure says why the CLI could not be executed.
func startFailure(err error) *Error {
	if start, ok := errors.AsType[*startError](err); ok && (start.Errno == syscall.ENOENT || start.Errno == syscall.EACCES || start.Errno == syscall.ENOEXEC) {
		return NewError(ClassCLIMissing, err.Error())
	}
	return NewError(ClassInternal, err.Error())
}

func (r *Runner) closeLog(log *runLog, res *Result) {
	verdict := string(res.Outcome)
	if res.Error != nil {
		verdict += " (" + res.Error.Error() + ")"
	}
	log.write(fmt.Sprintf("# %s after %s, exit %d%s, $%.4f, %d turns\n",
		verdict, res.Duration.Round(time.Millisecond), res.ExitCode, strings.TrimRight(" "+res.Signal, " "), res.CostUSD, res.Turns))
	if err := log.Close(); err != nil {
		res.Resources.LogErr = err.Error()
	}
}

// live is a run under way.
type live struct {
	r       *Runner
	spec    Spec
	host    Host
	child   *child
	log     *runLog
	in      *stdin
	control *control
	stream  *stream
	stderr  tail

	idle   chan struct{}           // the session has nothing left to do; capacity 1
	hosted sync.WaitGroup          // calls of Host.Next and Host.Idle
	read   sync.WaitGroup          // the two readers
	quiet  chan struct{}           // closed when both readers are done: every process of the run is dead
	ctx    context.Context         // ends, with the first cause, when the run has to
	cancel context.CancelCauseFunc // by whom the run itself ends ctx
}

// watch starts the goroutines that read the child's output.
func (r *Runner) watch(s Spec, h Host, c *child, log *runLog) *live {
	l := &live{r: r, spec: s, host: h, child: c, log: log, in: &stdin{f: c.Stdin}, idle: make(chan struct{}, 1), quiet: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	l.control = newControl(l.in)
	l.stream = &stream{
		dir: s.Dir, redact: r.cfg.Redactor, log: log, emit: h.Event, now: time.Now, active: time.Now(), tools: map[string]bool{},
		on: signals{
			Idle:     func() { wake(l.idle) },
			Hopeless: func() { l.cancel(errHopeless) },
			Answered: l.control.Answered,
			Withdrew: l.control.Withdrawn,
			Asked: func(id string, q *wireRequest) {
				l.control.Asked(l.ctx, id, func(ctx context.Context) (any, error) { return ask(ctx, q, h) })
			},
		},
	}
	l.read.Go(func() {
		defer c.Stdout.Close()
		l.stream.Read(newLines(c.Stdout))
		l.control.Die()
	})
	l.read.Go(func() {
		defer c.Stderr.Close()
		for in := newLines(c.Stderr); ; {
			line, _, _, err := in.Next()
			if err != nil {
				return
			}
			line = r.cfg.Redactor.Bytes(line)
			l.stderr.Add(line)
			log.Note(time.Now(), "[stderr] %s", line)
		}
	})
	go func() {
		l.read.Wait()
		close(l.quiet)
	}()
	return l
}

func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// converse holds the conversation until the session is over or has to be stopped, and stops it. finished means that the agent had
// nothing left to do and nobody had anything left to say; cause is what stopped the run before that.
func (l *live) converse(ctx context.Context) (finished bool, cause error) {
	stop := context.AfterFunc(ctx, func() { l.cancel(context.Cause(ctx)) })
	defer stop()
	// A write that the CLI does not take must not keep us from the ladder.
	hurry := context.AfterFunc(l.ctx, func() { l.in.Hurry(l.r.cfg.Grace / 5) })
	defer hurry()
	if l.spec.Limit > 0 {
		limit := time.AfterFunc(l.spec.Limit, func() { l.cancel(ErrLimit) })
		defer limit.Stop()
	}
	if l.open() {
		mail, stopMail := context.WithCancel(l.ctx)
		l.hosted.Go(func() { l.mail(mail) })
		finished = l.attend()
		stopMail() // what the host has from now on is for another run
	}
	if finished {
		l.leave()
		return true, nil
	}
	select {
	case <-l.quiet:
		return false, context.Cause(l.ctx) // it ended by itself, or in the moment in which it was to be stopped
	case <-l.ctx.Done():
	}
	l.halt()
	return false, context.Cause(l.ctx)
}

// open greets the CLI, hands it the context and the prompt. The greeting has an answer, so a CLI that hangs is found out here.
func (l *live) open() bool {
	ctx, cancel := context.WithTimeoutCause(l.ctx, l.r.startLimit, errStart)
	defer cancel()
	hello := map[string]any{"subtype": "initialize"}
	if l.spec.System != "" {
		hello["appendSystemPrompt"] = l.spec.System
	}
	if _, err := l.control.Request(ctx, hello); err != nil {
		switch _, refused := errors.AsType[*controlError](err); {
		case ctx.Err() != nil:
			l.cancel(context.Cause(ctx))
		case refused:
			l.cancel(fmt.Errorf("%w: %w", errStart, err))
		default:
			l.deaf(err)
		}
		return false
	}
	return l.send(l.spec.Prompt)
}

// deafPatience is how long a CLI that does not take its input has to be found dead, which is the usual reason.
const deafPatience = 2 * time.Second

// deaf stops a CLI that does not take its input, unless it turns out to be dead.
func (l *live) deaf(err error) {
	time.AfterFunc(deafPatience, func() { l.cancel(fmt.Errorf("%w: %w", errDeaf, err)) })
}

// send gives the agent a message.
func (l *live) send(m Message) bool {
	if m.ID == "" {
		m.ID = uuid.NewString()
	}
	l.stream.Begin()
	err := l.in.Send(userLine(m))
	if err != nil {
		l.deaf(err)
	}
	return err == nil
}

// mail passes on what the host has for the live run.
func (l *live) mail(ctx context.Context) {
	for {
		m, ok := l.host.Next(ctx)
		if !ok || !l.send(m) {
			return
		}
	}
}

// attend watches over the session until it is finished (true), or is over or has to be stopped (false).
func (l *live) attend() bool {
	watchdog := time.NewTimer(0)
	defer watchdog.Stop()
	type answer struct {
		m    Message
		more bool
	}
	answers := make(chan answer, 1)
	asking := false
	ask := func() {
		if asking {
			return
		}
		asking = true
		l.hosted.Go(func() {
			m, more := l.host.Idle(l.ctx)
			answers <- answer{m, more}
		})
	}
	for {
		select {
		case <-l.quiet:
			return false
		case <-l.ctx.Done():
			return false
		case <-l.idle:
			ask()
		case a := <-answers:
			asking = false
			if !a.more {
				return l.ctx.Err() == nil
			}
			if !l.send(a.m) {
				return false
			}
		case <-watchdog.C:
			next, silent := l.deadline()
			switch wait := time.Until(next); {
			case wait > 0:
				watchdog.Reset(wait)
				continue
			case silent:
				l.cancel(ErrStalled)
				continue
			default: // a result, and then nothing: the CLI is known to hang there (claude-code#25629, #39700)
				ask()
			}
			watchdog.Reset(l.r.exitLimit)
		}
	}
}

// deadline is when the watchdog has to act next: on silence, or on an end of turn that was not followed by the session's idling.
func (l *live) deadline() (next time.Time, silent bool) {
	active, toolOpen, turnOpen, ended := l.stream.Clock()
	if !turnOpen && !ended.IsZero() {
		return ended.Add(l.r.exitLimit), false
	}
	if l.spec.IdleLimit <= 0 {
		return time.Now().Add(l.r.exitLimit), true
	}
	patience := l.spec.IdleLimit
	if toolOpen {
		patience *= 4 // builds and test suites are silent for long and legal
	}
	return active.Add(patience), true
}

// leave ends a finished session: at the end of its input the CLI exits. One that does not is stopped; the answer stands.
func (l *live) leave() {
	l.in.Close()
	select {
	case <-l.quiet:
		return
	case <-time.After(l.r.exitLimit):
	case <-l.ctx.Done():
	}
	l.log.Note(time.Now(), "! the CLI did not exit after its session had ended; stopping it")
	l.child.Term(l.r.cfg.Grace * 3 / 5)
}

// halt is the stop ladder: interrupt, end_session, TERM, KILL. Each step leaves the CLI more of a chance to tidy up than the next;
// all of them together last Config.Grace.
func (l *live) halt() {
	l.log.Note(time.Now(), "! stopping: %v", context.Cause(l.ctx))
	grace := l.r.cfg.Grace
	l.step("interrupt", grace/5)
	l.step("end_session", grace/5)
	l.child.Term(grace * 3 / 5)
	l.in.Close()
}

// step asks the CLI to end and gives it a while to do so.
func (l *live) step(subtype string, patience time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	l.in.Hurry(patience) // a write that the CLI does not read must not hold up the ladder
	if _, err := l.control.Request(ctx, map[string]any{"subtype": subtype}); err != nil {
		return // it does not listen, or is gone
	}
	if subtype == "interrupt" {
		select {
		case <-l.idle: // the turn is over: its last words are written
		case <-l.quiet:
		case <-ctx.Done():
		}
		return
	}
	select {
	case <-l.quiet:
	case <-ctx.Done():
	}
}

// wait returns when every process of the run is dead and all output is read.
func (l *live) wait() {
	<-l.child.done
	if l.child.err != nil {
		// The keeper was killed. The kernel has killed the CLI with it; what its tools left is found by the marker, and until
		// they are dead the pipes may stay open.
		l.child.exit.Swept = sweepMarked(l.spec.ID)
		l.r.log.Error("keeper died", "run", l.spec.ID, "swept", l.child.exit.Swept, "err", l.child.err)
	}
	if l.child.exit.Stuck > 0 {
		l.r.log.Error("processes do not die", "run", l.spec.ID, "stuck", l.child.exit.Stuck)
	}
	if l.child.err != nil || l.child.exit.Stuck > 0 { // somebody may hold the pipes for ever
		for _, pipe := range []interface{ SetReadDeadline(time.Time) error }{l.child.Stdout, l.child.Stderr} {
			_ = pipe.SetReadDeadline(time.Now().Add(time.Second))
		}
	}
	<-l.quiet
	l.cancel(nil)
	l.in.Close()
	l.hosted.Wait() // the host is not called any more once Run has returned
	l.control.Wait()
}

// result puts together what is known once everything has ended.
func (l *live) result(finished bool, cause error) Result {
	l.stream.mu.Lock()
	defer l.stream.mu.Unlock()
	f := &l.stream.facts
	f.Open = l.stream.turn
	exit := l.child.exit
	redact := l.r.cfg.Redactor
	res := Result{
		Text: redact.String(strings.Join(f.Answers, "\n\n")), ExitCode: exit.Code, Signal: exit.Signal, Stderr: l.stderr.String(),
		Model: f.Model, Turns: f.Turns, Resources: f.Resources,
	}
	res.Outcome, res.Error = conclude(f, finished, cause, exit, res.Stderr)
	if res.Outcome == Done && res.Text == "" {
		res.Text = redact.String(strings.TrimSpace(string(f.Partial)))
	}
	if res.Outcome != Done {
		res.Partial = redact.String(strings.TrimSpace(strings.Join(append(f.Answers, string(f.Partial)), "\n\n")))
		res.Text = ""
	}
	if res.Error != nil {
		res.Error.Message = redact.String(res.Error.Message)
	}
	if f.Last != nil {
		res.CostUSD, res.Structured = f.Last.CostUSD, json.RawMessage(redact.Bytes(f.Last.Structured))
		for _, u := range f.Last.ModelUsage {
			res.Usage.Input += int64(u.Input)
			res.Usage.Output += int64(u.Output)
			res.Usage.CacheRead += int64(u.CacheRead)
			res.Usage.CacheCreation += int64(u.CacheCreation)
		}
	}
	res.Resources.CPU, res.Resources.MaxRSS = exit.CPU, exit.MaxRSS
	res.Resources.Swept, res.Resources.Stuck = exit.Swept, exit.Stuck
	return res
}
