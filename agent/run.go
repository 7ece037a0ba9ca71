package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
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
		e := startFailure(err, s.Dir)
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
