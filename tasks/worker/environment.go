package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/format"
	"github.com/errand-fleet/errand/tasks/worker/place"
	"github.com/errand-fleet/errand/tasks/worker/publish"
	"github.com/errand-fleet/errand/workspace"
)

// setUpLimit bounds a set-up. Other tasks that need the environment wait for it.
const setUpLimit = 30 * time.Minute

// maxOutput is how many bytes of the end of a set-up's output are kept.
const maxOutput = 2000

// setUp gives a run the environment of its repository. It runs the set-up if no run on this machine has needed the same
// environment before.
func (w *Worker) setUp(r *run, t tasks.Task, p *place.Place) error {
	d := p.Environment
	var err error
	if p.Exposed, err = w.exposed(r, t, p.Clone); err != nil || len(d.Setup) == 0 {
		return err
	}
	id, _, err := w.declarations.ID(r.Ctx, p.Clone, d)
	if err != nil {
		return err
	}
	kept, asked := workspace.EnvironmentsOf(w.cfg.Workspace), time.Now()
	e, release, err := kept.Use(r.Ctx, p.Clone, workspace.Environment{ID: id, From: p.From},
		func(ctx context.Context, c workspace.Clone, home workspace.Layer) error {
			if failed := w.setUps.since(id, asked); failed != nil {
				return failed
			}
			secrets, env := w.secrets(r, t.Repo, p.Clone), maps.Clone(d.Env)
			maps.Copy(env, secrets)
			given := agent.Environment{
				Env: env, Path: d.Path, Egress: d.Egress, Layers: []agent.Layer{agent.Layer(home)},
			}
			err := w.runSetUp(ctx, r, d.Setup, agent.Script{
				ID: t.ID, Dir: c.Dir, Reads: []string{c.Mirror}, Repo: c.Repo, Environment: given,
			})
			if err == nil {
				err = leaked(ctx, secrets, agent.Layer(home).Upper(), c.Dir)
			}
			w.setUps.note(id, err)
			return err
		})
	if err != nil {
		return err
	}
	context.AfterFunc(r.Life, release)
	layers, err := kept.Layers(r.Ctx, p.Clone, e)
	for _, l := range layers {
		p.Layers = append(p.Layers, agent.Layer(l))
	}
	p.SeenAs = e.SetUpDir
	return err
}

// runSetUp runs the lines of a set-up where script says, and reports it to the task's followers.
func (w *Worker) runSetUp(ctx context.Context, r *run, lines []string, script agent.Script) error {
	repo := script.Repo
	r.notice("Setting up the environment of " + repo)
	script.Limit, script.Line = setUpLimit, "set -e\n"+strings.Join(lines, "\n")
	s, err := w.cfg.Runner.Script(ctx, script)
	r.reached = publish.Reached(r.reached, s.Egress)
	took := tasks.Lasted(s.Duration)
	switch {
	case err != nil:
		return err
	case s.Outcome == agent.Stopped:
		return fmt.Errorf("set up %s: %w", repo, context.Cause(ctx))
	case s.Stuck > 0:
		return fmt.Errorf("set up %s: %d processes could not be ended", repo, s.Stuck)
	case s.Outcome == agent.Done:
		w.cfg.Log.Info("environment set up", "run", script.ID, "repo", repo, "dur", s.Duration.Round(time.Millisecond))
		r.notice("Set up the environment of " + repo + " in " + took)
		return nil
	}
	how := fmt.Sprintf("ended with exit code %d after %s", s.ExitCode, took)
	if s.Outcome == agent.Limit {
		how = "did not end within " + tasks.Lasted(setUpLimit)
	} else if s.Signal != "" {
		how = "was ended by " + s.Signal + " after " + took
	}
	r.notice(strings.TrimSpace("The set-up of " + repo + " " + how + ".\n" + format.Tail(s.Output, maxOutput)))
	failed := agent.NewError(agent.ClassWorkspace, "the set-up "+how)
	failed.User = "The set-up of " + repo + " " + how + "."
	said := strings.Split(strings.TrimSpace(s.Output), "\n")
	if last := untrusted.Line(said[len(said)-1], 300); last != "" {
		failed.User += " Its last line: " + last
	}
	failed.Remedy = "Correct setup in .github/errand.yml on the base branch, or in errand.yaml; the task's events " +
		"have the end of its output."
	return failed
}

// inventory lists the environments on this machine for heartbeats.
type inventory struct {
	*Config

	mu   sync.Mutex
	at   time.Time
	last []store.Environment
}

// inventoryKept is how long a list of the environments is reported, so that heartbeats seldom read the disk.
const inventoryKept = time.Minute

// environments returns the environments that were used last.
func (i *inventory) environments() []store.Environment {
	i.mu.Lock()
	defer i.mu.Unlock()
	if time.Since(i.at) < inventoryKept {
		return i.last
	}
	all, err := workspace.EnvironmentsOf(i.Workspace).List()
	i.warn(err, "list environments")
	slices.SortFunc(all, func(a, b workspace.Environment) int { return b.Used.Compare(a.Used) })
	i.at, i.last = time.Now(), nil
	for _, e := range all[:min(len(all), store.MaxEnvironments)] {
		i.last = append(i.last, store.Environment{
			ID: e.ID, Repo: e.Repo, Created: e.Created, Used: e.Used, Seconds: e.Took.Seconds(),
			Size: e.Size, From: e.From,
		})
	}
	return i.last
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
