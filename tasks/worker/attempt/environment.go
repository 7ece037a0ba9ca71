package attempt

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/format"
	"github.com/errand-fleet/errand/tasks/worker/place"
	"github.com/errand-fleet/errand/workspace"
)

// setUpLimit bounds a set-up. Other tasks that need the environment wait for it.
const setUpLimit = 30 * time.Minute

// maxOutput is how many bytes of the end of a set-up's output are kept.
const maxOutput = 2000

// setUp gives a run the environment of its repository, and returns the place with it. It runs the set-up if no run on
// this machine has needed the same environment before, and then returns the hosts that it has reached.
func (p *Processor) setUp(
	r *run, t tasks.Task, where place.Place,
) (_ place.Place, reached *agent.EgressReport, err error) {
	d := where.Environment
	where.Exposed, err = p.exposed(r, t, where.Clone)
	if err != nil || len(d.Setup) == 0 {
		return where, nil, err
	}
	id, _, err := p.Declarations.ID(r.Ctx, where.Clone, d)
	if err != nil {
		return where, nil, err
	}
	kept, asked := workspace.EnvironmentsOf(p.Workspace), time.Now()
	e, release, err := kept.Use(r.Ctx, where.Clone, id,
		func(ctx context.Context, c workspace.Clone, home workspace.Layer) error {
			if failed := p.setUps.since(id, asked); failed != nil {
				return failed
			}
			var err error
			reached, err = p.setUpIn(ctx, r, c, where, agent.Layer(home))
			p.setUps.note(id, err)
			return err
		})
	if err != nil {
		return where, reached, err
	}
	context.AfterFunc(r.Life, release)
	layers, err := kept.Layers(r.Ctx, where.Clone, e)
	for _, l := range layers {
		where.Layers = append(where.Layers, agent.Layer(l))
	}
	where.SeenAs = e.SetUpDir
	return where, reached, err
}

// setUpIn runs the set-up of a place in a separate clone, with secrets that it must not leave behind.
func (p *Processor) setUpIn(
	ctx context.Context, r *run, c workspace.Clone, where place.Place, home agent.Layer,
) (reached *agent.EgressReport, _ error) {
	d, id := where.Environment, r.Claim.ID()
	secrets, env := p.secrets(c.Repo), maps.Clone(d.Env)
	maps.Copy(env, secrets)
	given := agent.Environment{Env: env, Path: d.Path, Egress: d.Egress, Layers: []agent.Layer{home}}
	reached, err := p.runSetUp(ctx, r, d.Setup, agent.Script{
		ID: id, Dir: c.Dir, Reads: []string{c.Mirror}, Repo: c.Repo, Environment: given,
	})
	if err != nil {
		return reached, err
	}
	return reached, leaked(ctx, secrets, home.Upper(), c.Dir)
}

// runSetUp runs the lines of a set-up where script says, and reports it to the task's followers.
func (p *Processor) runSetUp(
	ctx context.Context, r *run, lines []string, script agent.Script,
) (reached *agent.EgressReport, _ error) {
	repo := script.Repo
	p.notice(r, "Setting up the environment of "+repo)
	script.Limit, script.Line = setUpLimit, "set -e\n"+strings.Join(lines, "\n")
	s, err := p.Runner.Script(ctx, script)
	reached = s.Egress
	if err != nil {
		return reached, err
	}
	if s.Outcome == agent.Stopped {
		return reached, fmt.Errorf("set up %s: %w", repo, context.Cause(ctx))
	}
	if s.Stuck > 0 {
		return reached, fmt.Errorf("set up %s: %d processes could not be ended", repo, s.Stuck)
	}
	if s.Outcome != agent.Done {
		return reached, p.setUpFailed(r, repo, s)
	}
	p.Log.Info("environment set up", "run", script.ID, "repo", repo, "dur", s.Duration.Round(time.Millisecond))
	p.notice(r, "Set up the environment of "+repo+" in "+tasks.Lasted(s.Duration))
	return reached, nil
}

// setUpFailed reports a set-up that has failed, and returns the error of the task.
func (p *Processor) setUpFailed(r *run, repo string, s agent.Scripted) error {
	how := fmt.Sprintf("ended with exit code %d after %s", s.ExitCode, tasks.Lasted(s.Duration))
	if s.Outcome == agent.Limit {
		how = "did not end within " + tasks.Lasted(setUpLimit)
	} else if s.Signal != "" {
		how = "was ended by " + s.Signal + " after " + tasks.Lasted(s.Duration)
	}
	p.notice(r, strings.TrimSpace("The set-up of "+repo+" "+how+".\n"+format.Tail(s.Output, maxOutput)))
	failed := agent.NewError(agent.ClassWorkspace, "the set-up "+how)
	failed.User = "The set-up of " + repo + " " + how + "."
	said := strings.Split(strings.TrimSpace(s.Output), "\n")
	if last := untrusted.Line(said[len(said)-1], 300); last != "" {
		failed.User += " Its last line: " + last
	}
	failed.Remedy = "Correct setup in .github on the base branch, or in errand.yaml; the task's events " +
		"have the end of its output."
	return failed
}

// failedSetUps remembers the set-ups that have failed, for the tasks that waited for them meanwhile: each would wait
// for the failure of the one before.
type failedSetUps struct {
	mu   sync.Mutex
	last map[string]failedSetUp // by the ID of the environment
}

type failedSetUp struct {
	at  time.Time
	err *agent.Error
}

// note notes how a set-up has ended. Only its own failure concerns others.
func (f *failedSetUps) note(id string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.last, func(_ string, one failedSetUp) bool { return time.Since(one.at) > 2*setUpLimit })
	if failed, ok := errors.AsType[*agent.Error](err); ok && failed.Class == agent.ClassWorkspace {
		if f.last == nil {
			f.last = map[string]failedSetUp{}
		}
		f.last[id] = failedSetUp{time.Now(), failed}
	}
}

// since returns the failure of a set-up that ended after a time, or nil.
func (f *failedSetUps) since(id string, asked time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if one, ok := f.last[id]; ok && one.at.After(asked) {
		return one.err
	}
	return nil
}
