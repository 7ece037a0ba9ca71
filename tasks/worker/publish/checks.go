package publish

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/format"
	"github.com/errand-fleet/errand/tasks/worker/place"
)

const (
	// Bounds of the time for all verification commands together; within them it is the rest of the run's limit.
	// asynq's deadline follows soon after.
	verifyAtLeast = 2 * time.Minute
	verifyAtMost  = 15 * time.Minute

	askCommandsFor  = 10 * time.Second // to get the list of commands
	maxVerifyOutput = 2000             // bytes that are kept of the end of an output
)

// verify runs a repository's verification commands in the directory where its agent has worked. An error means that
// nothing may be published.
func (b *publication) verify(t tasks.Task, p place.Place) (*tasks.Verification, error) {
	run := b.work
	commands, err := b.CommandsOf(run.Ctx, t.Repo)
	if err != nil {
		b.Log.Warn("read checks", "run", t.ID, "err", err)
		return &tasks.Verification{Problem: "their list could not be read"}, nil
	}
	if len(commands) == 0 {
		return nil, nil
	}
	left := run.checksLeft()
	if b.verifying.IsZero() { // the checks of all repositories share the time
		b.verifying = time.Now()
	}
	c, until := &tasks.Verification{Unrun: commands}, b.verifying.Add(left)
	for len(c.Unrun) > 0 {
		if run.Ctx.Err() != nil {
			c.Problem = run.Cause().Error()
			return c, nil //nolint:nilerr // reported as c.Problem
		}
		if !time.Now().Before(until) {
			c.Problem = "the time limit for all of them is " + tasks.Lasted(left)
			return c, nil
		}
		command := c.Unrun[0]
		run.Show(agent.Event{Time: time.Now(), Kind: agent.Notice, Text: "Running the check " + command})
		s, err := b.Scripts.Script(run.Ctx, agent.Script{
			ID: t.ID, Repo: t.Repo, Also: p.OtherRepositories(), Dir: p.Dir, Files: p.Files, Reads: p.Reads,
			Environment: p.Given(), Line: command, Limit: time.Until(until),
		})
		b.reached = Reached(b.reached, s.Egress)
		if err != nil {
			b.Log.Warn("run check", "run", t.ID, "err", err)
			c.Problem = "the worker could not start them"
			return c, nil
		}
		if s.Stuck > 0 {
			b.stuck = true
			return nil, errVerifyStuck
		}
		if s.Outcome == agent.Stopped {
			continue // the cause says why
		}
		b.Log.Info("check ended", "run", t.ID, "outcome", string(s.Outcome), "dur", s.Duration.Round(time.Millisecond))
		ran := tasks.Verified{Command: command, Outcome: s.Outcome, ExitCode: s.ExitCode, Duration: s.Duration}
		if s.Outcome != agent.Done {
			ran.Said = format.Tail(s.Output, maxVerifyOutput)
		}
		c.Ran, c.Unrun = append(c.Ran, ran), c.Unrun[1:]
	}
	return c, nil
}

// checksLeft returns how long the checks of a run may take together.
func (w Work) checksLeft() time.Duration {
	limit := w.Task.Options.Limit
	if limit <= 0 {
		return verifyAtMost
	}
	return min(verifyAtMost, max(verifyAtLeast, limit-w.Result.Duration))
}

// CommandsOf lists the verification commands of a repository.
func (b *Publisher) CommandsOf(ctx context.Context, repo string) ([]string, error) {
	if b.Commands == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askCommandsFor)
	defer cancel()
	return b.Commands(ctx, repo)
}

// Both returns the report of a run with that of another part of it: with the hosts that this has reached and could not
// reach.
func Both(run, part *agent.EgressReport) *agent.EgressReport {
	if part == nil || run == nil {
		return cmp.Or(run, part)
	}
	all := *Reached(run, part)
	all.Refusals += part.Refusals
	all.Refused = slices.Clone(all.Refused)
	for _, one := range part.Refused {
		if !slices.Contains(all.Refused, one) {
			all.Refused = append(all.Refused, one)
		}
	}
	return &all
}

// Reached returns the report of a run with the hosts that another part of it has reached, its set-up or a check, if
// they are to be listed.
func Reached(run, part *agent.EgressReport) *agent.EgressReport {
	if part == nil || !part.Learn {
		return run
	}
	all := agent.EgressReport{}
	if run != nil {
		all = *run
	}
	all.Learn = true
	all.Reached = slices.Concat(all.Reached, part.Reached)
	slices.Sort(all.Reached)
	all.Reached = slices.Compact(all.Reached)
	return &all
}
