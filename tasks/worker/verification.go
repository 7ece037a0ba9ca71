package worker

import (
	"context"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
)

// Bounds of the time for all commands together; within them it is the rest of the run's limit. asynq's deadline
// follows soon after.
const (
	verifyAtLeast = 2 * time.Minute
	verifyAtMost  = 15 * time.Minute
)

const (
	askCommandsFor  = 10 * time.Second // to get the list of commands
	maxVerifyOutput = 2000             // bytes that are kept of the end of an output
)

// verify runs a repository's verification commands in the directory where its agent has worked. An error means that nothing may be published.
func (w *Worker) verify(run *run, t tasks.Task, p place, used time.Duration) (*tasks.Verification, error) {
	commands, err := w.verificationCommands(run.ctx, t, p)
	if err != nil {
		w.log.Warn("read checks", "run", t.ID, "err", err)
		return &tasks.Verification{Problem: "their list could not be read"}, nil
	}
	if len(commands) == 0 {
		return nil, nil
	}
	left := verifyAtMost
	if t.Options.Limit > 0 {
		left = min(left, max(verifyAtLeast, t.Options.Limit-used))
	}
	c, until := &tasks.Verification{Unrun: commands}, time.Now().Add(left)
	for len(c.Unrun) > 0 {
		switch {
		case run.ctx.Err() != nil:
			c.Problem = run.cause().Error()
			return c, nil //nolint:nilerr // reported as c.Problem
		case !time.Now().Before(until):
			c.Problem = "the time limit for all of them is " + tasks.Lasted(left)
			return c, nil
		}
		command := c.Unrun[0]
		run.report.Update(agent.Event{Time: time.Now(), Kind: agent.Notice, Text: "Running the check " + command})
		s, err := w.runner.Script(run.ctx, agent.Script{
			ID: t.ID, Dir: p.Dir, Files: p.Files, Reads: p.Reads, Line: command, Limit: time.Until(until),
		})
		switch {
		case err != nil:
			w.log.Warn("run check", "run", t.ID, "err", err)
			c.Problem = "the worker could not start them"
			return c, nil
		case s.Stuck > 0:
			return nil, errVerifyStuck
		case s.Outcome == agent.Stopped:
			continue // the cause says why
		}
		w.log.Info("check ended", "run", t.ID, "outcome", string(s.Outcome), "dur", s.Duration.Round(time.Millisecond))
		ran := tasks.Verified{Command: command, Outcome: s.Outcome, ExitCode: s.ExitCode, Duration: s.Duration}
		if s.Outcome != agent.Done {
			ran.Said = end(s.Output, maxVerifyOutput)
		}
		c.Ran, c.Unrun = append(c.Ran, ran), c.Unrun[1:]
	}
	return c, nil
}

// verificationCommands lists the commands of a task's repository.
func (w *Worker) verificationCommands(ctx context.Context, t tasks.Task, p place) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, askCommandsFor)
	defer cancel()
	if w.cfg.Commands == nil {
		return nil, nil
	}
	return w.cfg.Commands(ctx, t.Repo, p.Clone.Base)
}

// end returns the end of a text, in whole lines if it has several.
func end(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s = s[len(s)-n:]
	if _, whole, found := strings.Cut(s, "\n"); found {
		return whole
	}
	return strings.ToValidUTF8(s, "")
}
