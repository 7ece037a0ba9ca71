// Package place is where a run works: its directories, its clones, and what the base branch declares for them.
package place

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/workspace"
)

// maxAttachment is the size of the largest file that an agent may post.
const maxAttachment = 20 << 20

// Place is where a run works.
type Place struct {
	Declared

	// Dir is the directory of the run, and Files the thread's directory for files.
	Dir, Files string
	// Folder is the directory below Dir in which the agent starts; "" is Dir.
	Folder string
	// gone is the directory in which the conversation began, if the clone no longer has it and the request names it.
	gone string
	// Reads are other directories that Dir needs, read-only.
	Reads []string
	// Clone is the clone in Dir; zero without one.
	Clone workspace.Clone
	// Submodules are the private repositories whose files Clone has as submodules.
	Submodules []string
	// Writes says that the agent may change Clone.
	Writes bool
	// Trusted says that the operator trusts the directory's own configuration of the CLI.
	Trusted bool
	// Fresh says that the directory has nothing from an earlier run.
	Fresh bool
	// Into is the base branch of the pull request; the clone's base if "".
	Into string
	// Fixes is the number of the issue that the work resolves, or 0.
	Fixes int
	// Branch is the one on which the work in Clone is published; "" if it is not published.
	Branch string
	// Author is the name and address of errand in commits, and CoAuthor that of the asker; "" if unknown.
	Author, CoAuthor string
	// Settled is what counts for the run, and Plugins are the operator's.
	Settled rights.Settled
	Plugins []agent.Instructions
	// Instructions are those of the repository in Clone.
	Instructions []agent.Instructions
	// About is a paragraph for the agent about the directories.
	About string

	// Exposed are the secrets that the run and its checks get.
	Exposed map[string]string
	// Layers are what the set-up has left, and SeenAs is as in agent.Spec.
	Layers []agent.Layer
	SeenAs string

	// Also are the clones of further repositories, without environments but for Egress and PullRequests.
	Also []Place
}

// Instructions returns what the base branch of a clone tells an agent.
func Instructions(ctx context.Context, w *workspace.Workspace, c workspace.Clone) ([]agent.Instructions, error) {
	set, err := w.Instructions(ctx, c)
	if err != nil {
		return nil, err
	}
	return []agent.Instructions{{Repo: c.Repo, Dir: c.Dir, Set: set}}, nil
}

// Told returns the instructions for the agent: the operator's, and those of all repositories.
func (p Place) Told() (all []agent.Instructions) {
	add := func(of, text string) {
		all = append(all, agent.TextInstructions("errand.yaml", "the instructions for "+of, text))
	}
	all = slices.Clone(p.Plugins)
	for _, t := range p.Settled.Before {
		add(t.For, t.Text)
	}
	for _, one := range p.Clones() {
		all = append(all, one.instructions()...)
	}
	for _, t := range p.Settled.After {
		add(t.For, t.Text)
	}
	return all
}

// Given returns what a run and its checks have besides the files.
func (p Place) Given() agent.Environment {
	d := p.Environment
	for _, one := range p.Also { // no code of a repository may reach more than that repository's runs
		d.Egress = d.Egress.And(one.Environment.Egress)
	}
	return agent.Environment{
		Env: d.Env, Secrets: p.Exposed, Path: d.Path, Start: d.Start, Egress: d.Egress, Layers: p.Layers,
		SeenAs: p.SeenAs, Author: p.Author,
	}
}

// Read reads a file from the run's directories.
func (p Place) Read(path string) ([]byte, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(p.Start(), path)
	}
	dirs := []string{p.Files}
	for _, one := range p.Clones() {
		dirs = append(dirs, one.Dir)
	}
	for _, dir := range dirs {
		rel, err := filepath.Rel(dir, path)
		if dir == "" || err != nil || !filepath.IsLocal(rel) {
			continue
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			return nil, fmt.Errorf("open %s: %w", dir, err)
		}
		defer root.Close()
		// Open the file before looking at it; opening a pipe would block without O_NONBLOCK.
		f, err := root.OpenFile(rel, os.O_RDONLY|unix.O_NONBLOCK, 0)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%s is not a regular file", rel)
		}
		if info.Size() > maxAttachment {
			return nil, fmt.Errorf("%s has %d bytes; at most %d can be posted", rel, info.Size(), maxAttachment)
		}
		return io.ReadAll(io.LimitReader(f, maxAttachment))
	}
	return nil, fmt.Errorf("%s is not in your working directory", path)
}

// OtherRepositories returns the other repositories whose code may be in the clone.
func (p Place) OtherRepositories() (list []agent.Also) {
	for _, repo := range p.Clone.With {
		list = append(list, agent.Also{Repo: repo})
	}
	return list
}

// Clones returns the place and those of the further clones.
func (p Place) Clones() []Place { return append([]Place{p}, p.Also...) }

// ForRepository returns a task with repo as its only repository. The main one stays as it is.
func ForRepository(t tasks.Task, repo string) tasks.Task {
	if repo != t.Repo {
		t.Repo, t.Ref, t.Also = repo, "", nil
	}
	return t
}

// RefusesSecrets returns the Refuse of a publication: nil if the run had no secrets.
func (p Place) RefusesSecrets() func(text string) string {
	if len(p.Exposed) == 0 {
		return nil
	}
	return func(text string) string {
		for name, secret := range p.Exposed {
			if slices.ContainsFunc(agent.SecretForms(secret), func(form string) bool {
				return strings.Contains(text, form)
			}) {
				return "the secret " + name + " is in a commit or a file; remove it from all commits"
			}
		}
		return ""
	}
}
