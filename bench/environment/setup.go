package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/bench/table"
	"github.com/errand-fleet/errand/workspace"
)

// setup measures what a set-up by npm costs the first task of a repository and the next ones, and what its result costs
// a run, and looks whether runs see the changes of others.
func (b *bench) setup(ctx context.Context) error {
	p, err := b.newProject(ctx)
	if err != nil {
		return err
	}
	begun := time.Now()
	e, release, err := p.space.Use(ctx, p.clone, "kept", p.npm)
	if err != nil {
		return err
	}
	defer release()
	first := time.Since(begun)
	var again []time.Duration
	for range b.Readings {
		begun := time.Now()
		_, release, err := p.space.Use(ctx, p.clone, "kept", nil)
		if err != nil {
			return err
		}
		again = append(again, time.Since(begun))
		release()
	}
	b.report.Note("the first set-up, by npm", first.Seconds(), "%.1f s")
	b.report.Note("of that in files", float64(e.Size)/1e6, "%.0f MB")
	b.report.Most("the next one, as a part of it", table.Median(again).Seconds()/first.Seconds(), 0.05, "%.4f")
	if err := b.start(ctx, p, e); err != nil {
		return err
	}
	return b.sideBySide(ctx, p, e)
}

// start measures the start of a command with and without the environment, by turns.
func (b *bench) start(ctx context.Context, p *project, e workspace.Environment) error {
	var with, without []time.Duration
	for n := range 4 * b.Readings {
		layers, err := p.space.Layers(ctx, p.clone, e)
		if err != nil {
			return err
		}
		for _, c := range []struct {
			layers []workspace.Layer
			line   string
			into   *[]time.Duration
		}{{nil, "true", &without}, {layers, "test -d node_modules/dep-0", &with}} {
			begun := time.Now()
			if _, err := p.run(ctx, fmt.Sprintf("start-%d-%d", n, len(c.layers)), c.line, c.layers...); err != nil {
				return err
			}
			*c.into = append(*c.into, time.Since(begun))
		}
	}
	added := table.Median(with) - table.Median(without)
	b.report.Note("the start of a command without it", float64(table.Median(without).Milliseconds()), "%.0f ms")
	b.report.Most("added by a kept environment", float64(added.Milliseconds()), 150, "%.0f ms")
	return nil
}

// sideBySide starts ten runs of different threads at once. Each writes to the environment what no other may see.
func (b *bench) sideBySide(ctx context.Context, p *project, e workspace.Environment) error {
	const runs = 10
	var all sync.WaitGroup
	var mu sync.Mutex
	var foreign int
	var failed error
	begun := time.Now()
	for n := range runs {
		all.Go(func() {
			clone, err := p.checkout(ctx, fmt.Sprint("beside-", n))
			var layers []workspace.Layer
			if err == nil {
				layers, err = p.space.Layers(ctx, clone, e)
			}
			var seen string
			if err == nil {
				line := fmt.Sprintf(`cd node_modules; head -c %d /dev/zero >mine; echo %d >owner-%d; rm -r dep-0; echo x >>dep-1/index.js; ls -d owner-* | wc -l; ls -d dep-* | wc -l`, b.Write, n, n)
				here := *p
				here.clone = clone
				seen, err = here.run(ctx, fmt.Sprint("beside-", n), line, layers...)
			}
			mu.Lock()
			defer mu.Unlock()
			if failed == nil {
				failed = err
			}
			if seen != fmt.Sprintf("1\n%d", b.Dependencies-1) {
				foreign++
			}
		})
	}
	all.Wait()
	b.report.Note(fmt.Sprintf("%d runs write %d MB each to it at once", runs, b.Write>>20), time.Since(begun).Seconds(),
		"%.1f s")
	b.report.Most("of them see what is not theirs", float64(foreign), 0, "%.0f")
	return failed
}

// project is a repository with dependencies, and a clone of it.
type project struct {
	runner *agent.Runner
	files  *workspace.Workspace
	space  workspace.Environments
	clone  workspace.Clone
}

func (b *bench) newProject(ctx context.Context) (*project, error) {
	work := filepath.Join(b.dir, "project")
	if err := b.writeProject(work); err != nil {
		return nil, fmt.Errorf("write the project: %w", err)
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main"},
		{"add", "--all"},
		{"-c", "user.name=Ann", "-c", "user.email=ann@example.com", "commit", "--quiet", "--message=all"},
	} {
		cmd := exec.CommandContext(ctx, "git", args...)
		cmd.Dir = work
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("git %s: %w (%s)", args[0], err, out)
		}
	}
	p := &project{}
	var err error
	if p.runner, err = agent.New(agent.Config{
		LogDir: filepath.Join(b.dir, "logs"), TempDir: b.dir, Sandbox: agent.SandboxBwrap,
		Hidden: []string{filepath.Join(b.dir, "w")},
	}); err != nil {
		return nil, err
	}
	p.files, err = workspace.New(workspace.Config{Dir: filepath.Join(b.dir, "w"), URL: func(string) string {
		return work
	}})
	if err != nil {
		return nil, err
	}
	p.space = workspace.EnvironmentsOf(p.files)
	p.clone, err = p.checkout(ctx, "first")
	return p, err
}

func (p *project) checkout(ctx context.Context, thread string) (workspace.Clone, error) {
	return p.files.Checkout(ctx, workspace.Want{Thread: thread, Repo: "acme/web"})
}

// npm is the set-up of the project. It needs no network.
func (p *project) npm(ctx context.Context, c workspace.Clone, home workspace.Layer) error {
	here := *p
	here.clone = c
	_, err := here.run(ctx, "set-up", "npm install --offline --no-audit --no-fund >/dev/null", home)
	return err
}

// run runs a command in the project's clone, and returns what it prints. It fails if the command does.
func (p *project) run(ctx context.Context, id, line string, layers ...workspace.Layer) (string, error) {
	s := agent.Script{ID: id, Dir: p.clone.Dir, Reads: []string{p.clone.Mirror}, Line: line}
	for _, l := range layers {
		s.Layers = append(s.Layers, agent.Layer(l))
	}
	res, err := p.runner.Script(ctx, s)
	if err == nil && res.Outcome != agent.Done {
		err = fmt.Errorf("%s: exit code %d: %s", id, res.ExitCode, res.Output)
	}
	return res.Output, err
}

// writeProject writes a project for npm with its dependencies as archives.
func (b *bench) writeProject(dir string) error {
	if err := os.MkdirAll(filepath.Join(dir, "deps"), 0o700); err != nil {
		return err
	}
	dependencies := map[string]string{}
	for n := range b.Dependencies {
		name := fmt.Sprint("dep-", n)
		dependencies[name] = "file:deps/" + name + ".tgz"
		if err := writePackage(filepath.Join(dir, "deps", name+".tgz"), name); err != nil {
			return err
		}
	}
	manifest, err := json.Marshal(map[string]any{"name": "web", "version": "1.0.0", "dependencies": dependencies})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "package.json"), manifest, 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("node_modules\n"), 0o600)
}

// writePackage writes the archive of a package with 50 files of 4 KB.
func writePackage(path, name string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	z := gzip.NewWriter(f)
	t := tar.NewWriter(z)
	files := map[string]string{
		"package.json": fmt.Sprintf(`{"name":%q,"version":"1.0.0","main":"index.js"}`, name),
		"index.js":     "module.exports = 1;\n",
	}
	for n := range 48 {
		files[fmt.Sprintf("lib/%d.js", n)] = strings.Repeat(fmt.Sprintf("// %s %d\n", name, n), 400)
	}
	for file, text := range files {
		if err := t.WriteHeader(&tar.Header{Name: "package/" + file, Mode: 0o644, Size: int64(len(text))}); err != nil {
			return err
		}
		if _, err := io.WriteString(t, text); err != nil {
			return err
		}
	}
	if err := t.Close(); err != nil {
		return err
	}
	return z.Close()
}
