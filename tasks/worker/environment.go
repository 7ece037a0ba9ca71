package worker

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/workspace"
)

// setUpLimit bounds a set-up. Other tasks that need the environment wait for it.
const setUpLimit = 30 * time.Minute

// setUp gives a run the environment of its repository. It runs the set-up if no run on this machine has needed the same
// environment before.
func (w *Worker) setUp(r *run, t tasks.Task, p *place) error {
	d := p.Environment
	if len(d.Setup) == 0 {
		return nil
	}
	kept := workspace.EnvironmentsOf(w.cfg.Workspace)
	versions, err := kept.Versions(r.ctx, p.Clone, d.LockFiles())
	if err != nil {
		return err
	}
	rebuilt, err := w.cfg.Store.Environments.Rebuilt(r.ctx, t.Repo)
	if err != nil {
		return err
	}
	// The set-up runs what is on the base branch, so those of other branches are others.
	id, asked := rebuilt.Name(d.Key(t.Repo, append(versions, p.Clone.Base))), time.Now()
	e, release, err := kept.Use(r.ctx, p.Clone, id, func(ctx context.Context, c workspace.Clone, home workspace.Layer) error {
		if failed := w.setUps.since(id, asked); failed != nil {
			return failed
		}
		secrets, env := w.secrets(r, t.Repo, p.Clone), maps.Clone(d.Env)
		maps.Copy(env, secrets)
		err := w.runSetUp(ctx, r, *p, agent.Script{ID: t.ID, Dir: c.Dir, Reads: []string{c.Mirror}, Layers: []agent.Layer{agent.Layer(home)}, Env: env})
		if err == nil {
			err = leaked(ctx, secrets, agent.Layer(home).Upper(), c.Dir)
		}
		w.setUps.note(id, err)
		return err
	})
	if err != nil {
		return err
	}
	context.AfterFunc(r.life, release)
	layers, err := kept.Layers(r.ctx, p.Clone, e)
	for _, l := range layers {
		p.Layers = append(p.Layers, agent.Layer(l))
	}
	p.SeenAs = e.Seen
	return err
}

// runSetUp runs the set-up of a place's repository where script says, and reports it to the task's followers.
func (w *Worker) runSetUp(ctx context.Context, r *run, p place, script agent.Script) error {
	repo := p.Clone.Repo
	r.notice("Setting up the environment of " + repo)
	script.Egress, script.Path, script.Limit = p.Environment.Egress, p.Environment.Path, setUpLimit
	script.Repo = repo
	script.Line = "set -e\n" + strings.Join(p.Environment.Setup, "\n")
	s, err := w.cfg.Runner.Script(ctx, script)
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
	r.notice(strings.TrimSpace("The set-up of " + repo + " " + how + ".\n" + end(s.Output, maxVerifyOutput)))
	failed := agent.NewError(agent.ClassWorkspace, "the set-up "+how)
	failed.User = "The set-up of " + repo + " " + how + "."
	lines := strings.Split(strings.TrimSpace(s.Output), "\n")
	if last := untrusted.Line(lines[len(lines)-1], 300); last != "" {
		failed.User += " Its last line: " + last
	}
	failed.Remedy = "Correct setup in .github/errand.yml on the base branch, or in errand.yaml; the task's events have the end of its output."
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
		i.last = append(i.last, store.Environment{ID: e.ID, Repo: e.Repo, Made: e.Made, Used: e.Used, Seconds: e.Took.Seconds(), Size: e.Size})
	}
	return i.last
}

// secrets returns the variables that only the set-up of a repository gets: if it runs what is on the branch that people
// protect, which is not the base of every pull request.
func (w *Worker) secrets(r *run, repo string, c workspace.Clone) map[string]string {
	if w.cfg.Secrets == nil {
		return nil
	}
	secrets := w.cfg.Secrets(repo)
	own, _ := w.cfg.Policy.Allowed(repo)
	if trusted := cmp.Or(own.Base, c.DefaultBranch); len(secrets) > 0 && c.Base != trusted {
		r.notice("The set-up gets no secrets, because it runs what is on " + c.Base + " and not on " + trusted)
		return nil
	}
	return secrets
}

// failedSetUps remembers the set-ups that have failed, for the tasks that waited for them meanwhile: each would wait for
// the failure of the one before.
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

// leaked returns an error if a set-up has left a secret in a file, where every run would find it.
func leaked(ctx context.Context, secrets map[string]string, dirs ...string) error {
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		var forms [][]byte
		for _, form := range agent.SecretForms(secrets[name]) {
			forms = append(forms, []byte(form))
		}
		for _, dir := range dirs {
			file, err := findText(ctx, dir, forms)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err == nil && file == "" {
				continue
			}
			failed := agent.NewError(agent.ClassWorkspace, "the set-up left a secret in a file")
			if err != nil {
				failed.Message = "search for secrets: " + err.Error()
				failed.User = "The set-up left files that cannot be searched for its secrets."
				return failed
			}
			failed.User = fmt.Sprintf("The set-up left the secret %s in the file %s, where every run could read it. Remove it at the end of the set-up.", name, untrusted.Line(file, 200))
			return failed
		}
	}
	return nil
}

// findText returns the first file below dir that contains one of the texts, relative to dir, or "".
func findText(ctx context.Context, dir string, texts [][]byte) (found string, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	longest := 0
	for _, text := range texts {
		longest = max(longest, len(text))
	}
	buffer := make([]byte, 1<<20+longest)
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || ctx.Err() != nil {
			return cmp.Or(ctx.Err(), err)
		}
		if !d.Type().IsRegular() {
			return nil
		}
		f, err := root.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		for kept := 0; ; {
			n, err := io.ReadFull(f, buffer[kept:])
			read := buffer[:kept+n]
			if slices.ContainsFunc(texts, func(text []byte) bool { return bytes.Contains(read, text) }) {
				found = name
				return fs.SkipAll
			}
			if err != nil { // the end of the file
				return nil
			}
			kept = copy(buffer, read[len(read)-longest:])
		}
	})
	return found, err
}
