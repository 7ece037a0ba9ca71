package tasks

import (
	"context"
	"fmt"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/workspace"
	"github.com/google/uuid"
)

// diffLimit bounds the diff left for the agent; beyond it the agent has the clone.
const diffLimit = 1 << 20

// place is where a run works.
type place struct {
	Dir, Files string
	Reads      []string        // what Dir needs besides, if only to read it
	Clone      workspace.Clone // what Dir is; zero: no clone
	Trusted    bool            // the directory's own configuration of the CLI counts
	Fresh      bool            // nothing of an earlier run is in it
	Into       string          // branch that it is proposed for; empty: the clone's base
	Branch     string          // where what is left in Clone is published; empty: nowhere
	About      string          // one paragraph for the agent on what lies where
}

// place prepares the directory of a run: the thread's clone, a local directory, or a scratch directory.
func (w *Worker) place(ctx context.Context, t Task, b Brief, files string, before *past) (place, error) {
	p := place{Dir: t.Dir, Files: files, Trusted: true}
	switch {
	case t.Repo != "":
		return w.clone(ctx, t, b, files, before)
	case t.Dir == "":
		dir, err := w.workspace.Scratch(t.Thread)
		if err != nil {
			return place{}, err
		}
		p.Dir, p.Trusted = dir, false
		p.About = "You are in an empty scratch directory of this conversation; there is no repository."
	}
	return p, nil
}

func (w *Worker) clone(ctx context.Context, t Task, b Brief, files string, before *past) (place, error) {
	var repo Repository
	if w.cfg.Policy.Repository != nil {
		repo, _ = w.cfg.Policy.Repository(t.Repo)
	}
	want := workspace.Want{
		Thread: t.Thread, Repo: t.Repo, Ref: t.Ref, Base: b.Base, Keep: b.Keep,
		Strange:       t.Profile == agent.Untrusted,
		TrustedConfig: repo.Trusted && t.Profile == agent.Write,
	}
	if want.Base == "" {
		want.Base = repo.Base
	}
	if want.Ref == "" {
		want.Ref = repo.Base
	}
	p := place{Files: files, Trusted: want.TrustedConfig}
	if w.publishes(t) {
		p.Branch = branchOf(t.Thread)
	}
	if b.Into != p.Branch {
		p.Into = b.Into
	}
	if b.Keep {
		want.Own = p.Branch
	}
	c, err := w.restore(ctx, t.ID, want, before)
	if err != nil {
		return place{}, err
	}
	p.Dir, p.Reads, p.Clone, p.Fresh = c.Dir, []string{c.Mirror}, c, c.Fresh
	p.About = fmt.Sprintf("You are in a clone of %s; origin/%s is its base. There is no remote, ", t.Repo, c.Base) + p.fate(t)
	if b.Diff {
		path, note, err := w.diff(ctx, c, files)
		if err != nil {
			return place{}, err
		}
		p.About += fmt.Sprintf(" The change in question, %s...%s, is in %s%s.", c.BaseSHA, c.Head, path, note)
	}
	if b.Since != "" {
		about, err := w.since(ctx, c, b.Since, files)
		if err != nil {
			return place{}, err
		}
		p.About += about
	}
	return p, nil
}

// fate tells the agent what becomes of what it leaves in its clone.
func (p place) fate(t Task) string {
	if p.Branch == "" {
		return "and nothing is published from here: whatever people are to see, such as a diff, has to be in your answer."
	}
	said := "and you need none: when you have answered, the commits that are checked out, and as one more commit what you left uncommitted, are published as branch " +
		p.Branch + " with a draft pull request. So leave nothing in the clone that does not belong there, and end the message of each commit with the line " + trailer(t) + "."
	if p.Clone.Published {
		said += " What was published before is origin/" + p.Branch + "; if it has commits that you lack, merge it before you go on."
	}
	return said
}

// diff leaves the change in the thread's directory.
func (w *Worker) diff(ctx context.Context, c workspace.Clone, files string) (path, note string, err error) {
	text, cut, err := w.workspace.Diff(ctx, c, diffLimit)
	if err != nil {
		return "", "", err
	}
	if path, err = leave(files, "changes.diff", text); err != nil {
		return "", "", err
	}
	if cut {
		note = fmt.Sprintf(" (only its first %d KiB; read the rest in the clone)", diffLimit>>10)
	}
	return path, note, nil
}

// spec puts a run together.
func (w *Worker) spec(t Task, b Brief, p place, c conversation, before *past) agent.Spec {
	prompt := b.Prompt
	if prompt.Text == "" {
		prompt.Text = t.Prompt
	}
	system, words := b.System, before.words(t, p)
	if before.goesOn() {
		// The prompt is in the conversation already; said twice it would be done twice.
		prompt = agent.Message{Text: words, Composed: true}
	} else if words != "" {
		system += "\n\n" + words
	}
	if t.Options.Plan {
		prompt.Mode = agent.Plan
	}
	prompt.ID = uuid.NewString() // by which a checkpoint is seen to hold it
	if p.About != "" {
		system += "\n\n" + p.About
	}
	switch {
	case !p.Fresh || c.session == nil:
	case p.Clone.Published:
		system += " The clone is new, and begins at what was published of your work; what was not is not there any more."
	default:
		system += " The clone is new: what you had changed in it earlier in this conversation is not there any more."
	}
	where := t.Repo
	if where == "" {
		where = t.Dir
	}
	return agent.Spec{
		ID: t.ID, Dir: p.Dir, Files: p.Files, Reads: p.Reads, Prompt: prompt, System: system,
		Profile: t.Profile, TrustedConfig: p.Trusted, Rules: w.cfg.Policy.Rules,
		Model: or(t.Options.Model, w.cfg.Model), Effort: t.Options.Effort, MaxUSD: t.Options.MaxUSD, Schema: b.Schema, Resume: c.session, History: c.said,
		Limit: t.Options.Limit, IdleLimit: w.cfg.IdleLimit, Thread: t.Thread, Repo: t.Repo,
		Header: []string{
			"thread " + t.Thread, "source " + t.Source + " " + t.Kind + " by " + t.Actor, "profile " + string(t.Profile),
			"where " + or(where, "scratch"), "task " + t.Title(), "worker " + w.id,
		},
	}
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
