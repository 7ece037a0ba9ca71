package attempt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/environment"
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/tasks/worker/place"
	"github.com/errand-fleet/errand/tasks/worker/publish"
	"github.com/errand-fleet/errand/workspace"
)

// diffLimit is the length of the longest diff that is written for the agent; the clone has the rest.
const diffLimit = 1 << 20

// placer prepares the directories of runs. It is safe for concurrent use.
type placer struct {
	store        *store.Store
	workspace    *workspace.Workspace
	policy       rights.Policy
	checkpoints  *checkpointer
	publisher    *publish.Publisher
	declarations *place.Declarations
}

// prepare prepares the directory of a run: the thread's clone, a local directory, or a scratch directory.
func (l *placer) prepare(ctx context.Context, t tasks.Task, b briefing, before *resumeState) (place.Place, error) {
	p, err := l.directory(ctx, t, b, before)
	p.Settled, p.Plugins = l.policy.Settle(t, p.Own), l.policy.Plugins
	p.Notes = append(p.Notes, p.Settled.Notes...)
	return p, err
}

// directory prepares the directory, and reads what its base branch declares.
func (l *placer) directory(ctx context.Context, t tasks.Task, b briefing, before *resumeState) (place.Place, error) {
	if t.Repo != "" {
		return l.clones(ctx, t, b, before)
	}
	p := place.Place{
		Dir: t.Dir, Files: b.files, Trusted: true,
		Declared: place.Declared{Environment: environment.Declaration{Egress: l.policy.Egress}},
	}
	if t.Dir != "" {
		return p, nil
	}
	dir, err := l.workspace.Scratch(t.Thread)
	if err != nil {
		return place.Place{}, err
	}
	p.Dir, p.Trusted = dir, false
	p.About = "You are in an empty scratch directory of this conversation; there is no repository."
	return p, nil
}

// clones prepares the clone of each repository of a task.
func (l *placer) clones(ctx context.Context, t tasks.Task, b briefing, before *resumeState) (place.Place, error) {
	with, err := l.mixed(ctx, t)
	if err != nil {
		return place.Place{}, err
	}
	p, err := l.clone(ctx, t, b, before.earlierClone(0, with))
	if err != nil {
		return place.Place{}, err
	}
	// A branch that the request names is one of the main clone.
	kept := briefing{Brief: tasks.Brief{Keep: true}, files: b.files}
	for i, repo := range t.Also {
		one, err := l.clone(ctx, place.ForRepository(t, repo), kept, before.earlierClone(i+1, with))
		if err != nil {
			return place.Place{}, err
		}
		p.Notes = append(p.Notes, one.Notes...)
		p.Reads = append(p.Reads, one.Reads...)
		p.About += "\n\n" + strings.Replace(one.About, "You are in a clone of "+repo,
			"A clone of "+repo+" is in "+one.Dir, 1)
		p.Also = append(p.Also, one)
	}
	for _, name := range p.Clone.With {
		if repo, _ := l.policy.Allowed(name); !t.Has(name) {
			reach := environment.Declaration{}.Reach(repo.Environment.Egress, l.policy.Egress)
			p.Environment.Egress = p.Environment.Egress.And(reach)
		}
	}
	egress := p.Given().Egress
	for i := range p.Also { // its own environment belongs to a directory that is not its own here
		d := p.Also[i].Environment
		p.Also[i].Environment = environment.Declaration{Egress: egress, PullRequests: d.PullRequests}
	}
	return p, nil
}

func (l *placer) clone(ctx context.Context, t tasks.Task, b briefing, before earlierClone) (place.Place, error) {
	repo, _ := l.policy.Allowed(t.Repo)
	want := workspace.Want{
		Thread: t.Thread, Repo: t.Repo, Ref: cmp.Or(t.Ref, repo.Base), Base: b.Base, Protected: repo.Base,
		Keep:          b.Keep,
		Strange:       t.Profile == agent.Untrusted,
		Runs:          t.Profile == agent.Write,
		TrustedConfig: repo.Trusted && t.Profile == agent.Write,
		With: slices.DeleteFunc(slices.Clone(before.with), func(other string) bool {
			return strings.EqualFold(other, t.Repo)
		}),
	}
	var private []string
	want.Submodule = l.submodules(t, &private)
	p := place.Place{
		Files: b.files, Trusted: want.TrustedConfig, Writes: t.Profile == agent.Write,
	}
	publishes := l.publisher.Publishes(t)
	p.Fixes = b.Fixes
	if b.Keep && publishes {
		want.Own = publish.Branch("", t.Thread)
	}
	c, err := l.checkpoints.restore(ctx, t.ID, want, before)
	if err != nil {
		return place.Place{}, err
	}
	p.Dir, p.Reads, p.Clone, p.Fresh, p.Submodules = c.Dir, []string{c.Mirror}, c, c.Fresh, private
	if p.Instructions, err = place.Instructions(ctx, l.workspace, c); err != nil {
		return place.Place{}, err
	}
	declared := l.declarations.Least // other profiles run no commands
	if p.Writes {
		declared = l.declarations.Of
	}
	if p.Declared, err = declared(ctx, repo, c); err != nil {
		return place.Place{}, err
	}
	if c.Base != c.Protected {
		p.Notes = append(p.Notes, "The base is "+c.Base+". Instructions, settings and set-up are those of "+c.Protected+
			", because anyone who can push can choose another base.")
	}
	if publishes {
		p.Branch = cmp.Or(c.Published, publish.Branch(p.Environment.PullRequests.BranchPrefix, t.Thread))
		p.Author, p.CoAuthor = l.publisher.Identities(ctx, t)
	}
	if b.Into != p.Branch {
		p.Into = b.Into
	}
	p.About = fmt.Sprintf("You are in a clone of %s; origin/%s is its base. There is no remote, ", t.Repo,
		c.Base) + fate(t, p)
	about, err := l.writeChanges(ctx, c, b)
	if err != nil {
		return place.Place{}, err
	}
	p.About += about + partly(c)
	for _, lack := range c.Lacks {
		p.Notes = append(p.Notes, c.Repo+": "+lack.String())
	}
	return p, nil
}

// submodules permits the submodules of a task, and adds the private ones to a list.
func (l *placer) submodules(t tasks.Task, private *[]string) func(context.Context, string) (string, error) {
	return func(ctx context.Context, repo string) (string, error) {
		is, why, err := l.policy.PermitSubmodule(ctx, l.store, t, repo)
		if is && why == "" {
			*private = append(*private, repo)
		}
		return why, err
	}
}

// partly explains to the agent what the clone has in another way than its commits, or not at all.
func partly(c workspace.Clone) (said string) {
	if len(c.Submodules) > 0 {
		said = " The files of submodules are there without their history, and your changes to them are neither " +
			"kept nor published."
	}
	for _, lack := range c.Lacks {
		said += "\n\n" + untrusted.Quote("the clone", lack.String()) // the author of a head chooses names
	}
	return said
}

// fate explains to the agent what happens to its work in the clone.
func fate(t tasks.Task, p place.Place) string {
	if p.Branch == "" {
		return "and nothing is published from here: put everything that people should see, " +
			"such as a diff, in your answer."
	}
	said := "and you need none: when you have answered, the commits on your current branch, and your uncommitted " +
		"changes as one more commit, are published as branch " +
		p.Branch +
		" with a draft pull request. Leave nothing in the clone that does not belong there, and end each " +
		"commit message with the line " +
		strings.ReplaceAll(publish.Trailers(t, p.CoAuthor), "\n", " and the line ") + "."
	if p.Clone.LFS {
		said += " If a file in Git LFS has new contents, nothing is published."
	}
	if p.Clone.Published != "" {
		said += " Your earlier work was published as origin/" + p.Branch +
			". If that has commits that you lack, merge it before you continue."
	}
	if p.Clone.Published != "" || !p.Fresh {
		said += " But if origin/" + p.Clone.Base + " has your earlier work as other commits, because its pull " +
			"request was merged, begin new work there: the next pull request must not have the old commits."
	}
	return said
}

// writeChanges writes the change in question, and what is new in it since an earlier head, to the thread's directory,
// as far as the brief asks for them. It returns sentences about the files for the agent. If the earlier head no longer
// exists, there is only the whole change.
func (l *placer) writeChanges(ctx context.Context, c workspace.Clone, b briefing) (about string, err error) {
	if b.Diff {
		text, cut, err := l.workspace.Diff(ctx, c, diffLimit)
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
	s, err := l.workspace.Since(ctx, c, b.Since, diffLimit)
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
