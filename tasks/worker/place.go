package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/environment"
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/format"
	"github.com/errand-fleet/errand/workspace"
)

const (
	diffLimit     = 1 << 20  // longest diff that is written for the agent; the clone has the rest
	maxAttachment = 20 << 20 // largest file that an agent may post
)

// place is where a run works.
type place struct {
	Dir, Files string
	Reads      []string        // other directories that Dir needs, read-only
	Clone      workspace.Clone // the clone in Dir; zero without a clone
	Writes     bool            // the agent may change Clone
	Trusted    bool            // the operator trusts the directory's own configuration of the CLI
	Fresh      bool            // the directory has nothing from an earlier run
	Into       string          // base branch of the pull request; the clone's base if ""
	Fixes      int             // number of the issue that the work resolves, or 0
	Branch     string          // branch on which the work in Clone is published; "" if it is not published
	Author     string          // name and address of errand in commits
	CoAuthor   string          // those of the asker; "" if unknown
	About      string          // a paragraph for the agent about the directories
	Notes      []string        // what is wrong with the declared environment, for the followers of the task
	Lacking    string          // likewise, what the worker lacks for it

	Environment environment.Declaration
	From        string            // what declares its set-up
	Exposed     map[string]string // secrets that the run and its checks get
	Layers      []agent.Layer     // what its set-up has left
	SeenAs      string            // as in agent.Spec

	Also []place // the clones of further repositories, without environments but for Egress and PullRequests
}

// placer prepares the directories of runs. It is safe for concurrent use.
type placer struct {
	*Config

	checkpoints *checkpointer
	publisher   *publisher
}

// prepare prepares the directory of a run: the thread's clone, a local directory, or a scratch directory.
func (l *placer) prepare(ctx context.Context, t tasks.Task, b briefing, before *resumeState) (place, error) {
	p := place{Dir: t.Dir, Files: b.files, Trusted: true, Environment: environment.Declaration{Egress: l.Policy.Egress}}
	switch {
	case t.Repo != "":
		return l.clones(ctx, t, b, before)
	case t.Dir == "":
		dir, err := l.Workspace.Scratch(t.Thread)
		if err != nil {
			return place{}, err
		}
		p.Dir, p.Trusted = dir, false
		p.About = "You are in an empty scratch directory of this conversation; there is no repository."
	}
	return p, nil
}

func (l *placer) clone(ctx context.Context, t tasks.Task, b briefing, before earlierClone) (place, error) {
	repo, _ := l.Policy.Allowed(t.Repo)
	want := workspace.Want{
		Thread: t.Thread, Repo: t.Repo, Ref: cmp.Or(t.Ref, repo.Base), Base: cmp.Or(b.Base, repo.Base), Keep: b.Keep,
		Strange:       t.Profile == agent.Untrusted,
		Runs:          t.Profile == agent.Write,
		TrustedConfig: repo.Trusted && t.Profile == agent.Write,
		With: slices.DeleteFunc(slices.Clone(before.with), func(other string) bool {
			return strings.EqualFold(other, t.Repo)
		}),
	}
	p := place{
		Files: b.files, Trusted: want.TrustedConfig, Writes: t.Profile == agent.Write,
		Environment: environment.Declaration{Egress: environment.Declaration{}.Reach(repo.Environment.Egress,
			l.Policy.Egress)},
	}
	publishes := l.publisher.publishes(t)
	p.Fixes = b.Fixes
	if b.Keep && publishes {
		want.Own = branchOf("", t.Thread)
	}
	c, err := l.checkpoints.restore(ctx, t.ID, want, before)
	if err != nil {
		return place{}, err
	}
	p.Dir, p.Reads, p.Clone, p.Fresh = c.Dir, []string{c.Mirror}, c, c.Fresh
	if p.Writes { // other profiles run no commands
		if err := l.environment(ctx, repo, &p); err != nil {
			return place{}, err
		}
	}
	if publishes {
		p.Branch = cmp.Or(c.Published, branchOf(p.Environment.PullRequests.BranchPrefix, t.Thread))
		p.Author, p.CoAuthor = l.publisher.identities(ctx, t)
	}
	if b.Into != p.Branch {
		p.Into = b.Into
	}
	p.About = fmt.Sprintf("You are in a clone of %s; origin/%s is its base. There is no remote, ", t.Repo,
		c.Base) + p.fate(t)
	about, err := l.writeChanges(ctx, c, b)
	if err != nil {
		return place{}, err
	}
	p.About += about
	return p, nil
}

// environment adds the environment that the base branch declares, under the operator's, to a place with a clone.
// Without a set-up by either, that of a devcontainer.json counts.
func (l *placer) environment(ctx context.Context, repo tasks.Repository, p *place) error {
	declared, err := l.declared(ctx, p, environment.File, environment.Parse)
	p.From = environment.File
	if repo.Environment.Setup != nil {
		p.From = "errand.yaml"
	}
	for _, name := range environment.DevcontainerFiles {
		if err != nil || declared.Setup != nil || repo.Environment.Setup != nil {
			break
		}
		var dev environment.Declaration
		dev, err = l.declared(ctx, p, name, environment.ParseDevcontainer)
		dev.Egress = declared.Egress
		declared, p.From = dev.Under(declared), name
	}
	p.Environment = declared.Under(repo.Environment)
	p.Environment.Egress = declared.Reach(repo.Environment.Egress, l.Policy.Egress)
	return errors.Join(err, l.withTools(ctx, p))
}

// withTools lets mise install the versions of tools that the base branch or the operator names, or notes that the
// worker has no mise.
func (l *placer) withTools(ctx context.Context, p *place) error {
	versions, err := workspace.EnvironmentsOf(l.Workspace).Versions(ctx, p.Clone, environment.ToolFiles)
	if err != nil {
		return err
	}
	var named []string
	for i, name := range environment.ToolFiles {
		if versions[i] != "" {
			named = append(named, name)
		}
	}
	if len(p.Environment.Tools) > 0 {
		named = append(named, "tools")
	}
	switch {
	case len(named) == 0:
	case l.Mise:
		p.Environment = p.Environment.WithMise()
	default:
		p.Lacking = "The repository names versions of tools (" + strings.Join(named, ", ") +
			"), and the worker has no mise to install them."
	}
	return nil
}

// declared reads a declaration from a file of the base branch, and notes what is wrong with it.
func (l *placer) declared(
	ctx context.Context, p *place, name string, parse func([]byte) (environment.Declaration, []string),
) (d environment.Declaration, err error) {
	text, err := l.Workspace.BaseFile(ctx, p.Clone, name, environment.MaxFile)
	if err != nil && !errors.Is(err, workspace.ErrTooLarge) || err == nil && text == "" {
		return d, err
	}
	d, wrong := parse([]byte(text))
	if err != nil {
		d, wrong = environment.Declaration{}, []string{fmt.Sprintf("The file has more than %d KiB, so it is ignored.",
			environment.MaxFile>>10)}
	}
	for _, one := range wrong {
		p.Notes = append(p.Notes, name+": "+untrusted.Line(one, 300))
	}
	return d, nil
}

// fate explains to the agent what happens to its work in the clone.
func (p place) fate(t tasks.Task) string {
	if p.Branch == "" {
		return "and nothing is published from here: put everything that people should see, " +
			"such as a diff, in your answer."
	}
	said := "and you need none: when you have answered, the commits on your current branch, and your uncommitted " +
		"changes as one more commit, are published as branch " +
		p.Branch +
		" with a draft pull request. Leave nothing in the clone that does not belong there, and end each " +
		"commit message with the line " + strings.ReplaceAll(p.trailers(t), "\n", " and the line ") + "."
	if p.Clone.Published != "" {
		said += " Your earlier work was published as origin/" + p.Branch +
			". If that has commits that you lack, merge it before you continue."
	}
	return said
}

// writeChanges writes the change in question, and what is new in it since an earlier head, to the thread's directory,
// as far as the brief asks for them. It returns sentences about the files for the agent. If the earlier head no longer
// exists, there is only the whole change.
func (l *placer) writeChanges(ctx context.Context, c workspace.Clone, b briefing) (about string, err error) {
	if b.Diff {
		text, cut, err := l.Workspace.Diff(ctx, c, diffLimit)
		if err != nil {
			return "", err
		}
		path, err := tasks.WriteFile(b.files, "changes.diff", []byte(text))
		if err != nil {
			return "", err
		}
		about = fmt.Sprintf(" The change in question, %s...%s, is in %s", c.BaseSHA, c.Head, path)
		if cut {
			about += fmt.Sprintf(" (only its first %d KiB; read the rest in the clone)", diffLimit>>10)
		}
		about += "."
	}
	if b.Since == "" {
		return about, nil
	}
	s, err := l.Workspace.Since(ctx, c, b.Since, diffLimit)
	if errors.Is(err, workspace.ErrRef) {
		return about, nil
	} else if err != nil {
		return "", err
	}
	path, err := tasks.WriteFile(b.files, "since.diff", []byte(s.Text))
	if err != nil {
		return "", err
	}
	about += fmt.Sprintf(" The changes since %s, an earlier head, are in %s", b.Since, path)
	if s.Truncated {
		about += " (only the beginning)"
	}
	if s.Rewritten {
		about += "; the history was rewritten since then, so the file may start with the output of git range-diff"
	}
	return about + ".", nil
}

// given returns what a run and its checks have besides the files.
func (p place) given() agent.Environment {
	d := p.Environment
	for _, one := range p.Also { // no code of a repository may reach more than that repository's runs
		d.Egress = d.Egress.And(one.Environment.Egress)
	}
	return agent.Environment{
		Env: d.Env, Secrets: p.Exposed, Path: d.Path, Start: d.Start, Egress: d.Egress, Layers: p.Layers,
		SeenAs: p.SeenAs, Author: p.Author,
	}
}

// spec returns the specification of a run.
func (w *Worker) spec(t tasks.Task, b tasks.Brief, s setting) agent.Spec {
	p, c, before := s.place, s.conversation, s.before
	prompt, words := b.Prompt, before.words(t, p)
	prompt.Text = cmp.Or(prompt.Text, t.Prompt)
	if before.goesOn() {
		// The conversation has the prompt already. If it came twice, the agent would do the work twice.
		prompt, words = agent.Message{Text: words, Composed: true}, ""
	}
	if t.Options.Plan {
		prompt.Mode = agent.Plan
	}
	prompt.ID = uuid.NewString() // a session that contains this ID has the prompt
	var also []agent.Also
	trusted := true
	for i, one := range p.clones() {
		of := ""
		trusted = trusted && one.Trusted // the agent sees the files of all of them
		if i > 0 {
			of, also = " of "+one.Clone.Repo, append(also, agent.Also{Repo: one.Clone.Repo, Dir: one.Dir})
		}
		switch {
		case !one.Fresh || c.session == nil:
		case one.Clone.Published != "":
			p.About += " The clone" + of +
				" is new and starts from your published work. Your unpublished changes are gone."
		default:
			p.About += " The clone" + of + " is new: the changes that you made earlier in this conversation are gone."
		}
	}
	also = append(also, slices.DeleteFunc(p.otherRepositories(), func(a agent.Also) bool { return t.Has(a.Repo) })...)
	return agent.Spec{
		ID: t.ID, Claimed: true, Dir: p.Dir, Files: p.Files, Also: also, Reads: p.Reads, Prompt: prompt,
		System: format.Paragraphs(b.System, words, p.About), Profile: t.Profile, TrustedConfig: trusted,
		Environment: p.given(), Rules: w.cfg.Policy.Rules, Model: cmp.Or(t.Options.Model, w.cfg.Model),
		Effort: t.Options.Effort, MaxUSD: t.Options.MaxUSD, Schema: b.Schema, Resume: c.session, History: c.said,
		Limit: t.Options.Limit, IdleLimit: w.cfg.IdleLimit, Thread: t.Thread, Repo: t.Repo,
		Person: w.cfg.Policy.People.Asker(t),
		Header: []string{
			"thread " + t.Thread, "source " + t.Source + " " + t.Kind + " by " + t.Actor,
			"profile " + string(t.Profile), "where " + cmp.Or(strings.Join(t.Repositories(), ", "), t.Dir, "scratch"),
			"task " + t.Title(), "worker " + w.id,
		},
	}
}

// read reads a file from the run's directories.
func (p place) read(path string) ([]byte, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(p.Dir, path)
	}
	dirs := []string{p.Files}
	for _, one := range p.clones() {
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
		switch {
		case err != nil:
			return nil, err
		case !info.Mode().IsRegular():
			return nil, fmt.Errorf("%s is not a regular file", rel)
		case info.Size() > maxAttachment:
			return nil, fmt.Errorf("%s has %d bytes; at most %d can be posted", rel, info.Size(), maxAttachment)
		}
		return io.ReadAll(io.LimitReader(f, maxAttachment))
	}
	return nil, fmt.Errorf("%s is not in your working directory", path)
}
