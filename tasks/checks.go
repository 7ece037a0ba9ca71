package tasks

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
)

// Checks is what came of the commands that the people of a repository want to succeed. The worker runs them itself, on the work that is about
// to be pushed: the agent is told to, but what it says of that is only what it says.
type Checks struct {
	Ran     []Checked `json:"ran,omitempty"`
	Unrun   []string  `json:"unrun,omitempty"`   // the others
	Problem string    `json:"problem,omitempty"` // why there are others, or why nobody knows which there are: a clause
	Before  bool      `json:"before,omitempty"`  // nothing new was pushed: what they came to was told then
}

// Checked is what came of one command.
type Checked struct {
	Command  string        `json:"command"`
	Outcome  agent.Outcome `json:"outcome"`
	ExitCode int           `json:"exit_code"`
	Said     string        `json:"said,omitempty"` // the end of its output, if it did not succeed
	Duration time.Duration `json:"duration"`
}

// The checks of a run may take, all together, what is left of its limit, within these bounds: asynq's deadline is not far behind that.
const (
	checksAtLeast = 2 * time.Minute
	checksAtMost  = 15 * time.Minute
)

const (
	askChecksFor = 10 * time.Second // for the list of them
	maxCheckSaid = 2000             // bytes of the end of an output
)

// check runs the checks of a repository where its agent has worked. An error means that nothing may be published.
func (w *Worker) check(run *run, t Task, p place, used time.Duration) (*Checks, error) {
	commands, err := w.checksOf(run.ctx, t, p)
	if err != nil {
		w.log.Warn("read checks", "run", t.ID, "err", err)
		return &Checks{Problem: "what they are could not be read"}, nil
	}
	if len(commands) == 0 {
		return nil, nil
	}
	left := checksAtMost
	if t.Options.Limit > 0 {
		left = min(left, max(checksAtLeast, t.Options.Limit-used))
	}
	c, until := &Checks{Unrun: commands}, time.Now().Add(left)
	for len(c.Unrun) > 0 {
		switch {
		case run.ctx.Err() != nil:
			c.Problem = run.cause().Error()
			return c, nil //nolint:nilerr // it is told
		case !time.Now().Before(until):
			c.Problem = "there were " + Lasted(left) + " for all of them"
			return c, nil
		}
		command := c.Unrun[0]
		run.told.Update(agent.Event{Time: time.Now(), Kind: agent.Notice, Text: "Running the check " + command})
		s, err := w.runner.Script(run.ctx, agent.Script{
			ID: t.ID, Dir: p.Dir, Files: p.Files, Reads: p.Reads, Line: command, Limit: time.Until(until),
		})
		switch {
		case err != nil:
			w.log.Warn("run check", "run", t.ID, "err", err)
			c.Problem = "the worker could not start them"
			return c, nil
		case s.Stuck > 0:
			return nil, errChecksStuck
		case s.Outcome == agent.Stopped:
			continue // the cause says why
		}
		w.log.Info("check ended", "run", t.ID, "outcome", string(s.Outcome), "dur", s.Duration.Round(time.Millisecond))
		ran := Checked{Command: command, Outcome: s.Outcome, ExitCode: s.ExitCode, Duration: s.Duration}
		if s.Outcome != agent.Done {
			ran.Said = end(s.Output, maxCheckSaid)
		}
		c.Ran, c.Unrun = append(c.Ran, ran), c.Unrun[1:]
	}
	return c, nil
}

// checksOf lists them.
func (w *Worker) checksOf(ctx context.Context, t Task, p place) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, askChecksFor)
	defer cancel()
	return w.cfg.Publisher.Checks(ctx, t.Repo, p.Clone.Base)
}

// end is the end of a text, in whole lines where it has several.
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

// failed are those that ran and did not succeed.
func (c *Checks) failed() []Checked {
	return slices.DeleteFunc(slices.Clone(c.Ran), func(one Checked) bool { return one.Outcome == agent.Done })
}

// Line says in a few words what they came to; empty where there are none.
func (c *Checks) Line() string {
	if c == nil || c.Before {
		return ""
	}
	var said []string
	if failed := c.failed(); len(failed) > 0 {
		var names []string
		for _, one := range failed {
			names = append(names, one.Command)
		}
		said = append(said, fmt.Sprintf("%d of %d checks failed: %s", len(failed), len(c.Ran)+len(c.Unrun), strings.Join(names, ", ")))
	} else if len(c.Ran) > 0 && len(c.Unrun) == 0 {
		said = append(said, "all checks succeeded")
	}
	switch {
	case c.Problem == "":
	case len(c.Ran) > 0 && len(c.Unrun) == 1:
		said = append(said, "1 was not run: "+c.Problem)
	case len(c.Ran) > 0:
		said = append(said, fmt.Sprintf("%d were not run: %s", len(c.Unrun), c.Problem))
	default:
		said = append(said, "the checks were not run: "+c.Problem)
	}
	return strings.Join(said, "; ")
}
