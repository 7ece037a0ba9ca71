package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
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
func (w *Worker) place(ctx context.Context, t tasks.Task, b tasks.Brief, files string, before *resumeState) (place, error) {
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

func (w *Worker) clone(ctx context.Context, t tasks.Task, b tasks.Brief, files string, before *resumeState) (place, error) {
	var repo tasks.Repository
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
func (p place) fate(t tasks.Task) string {
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
func (w *Worker) spec(t tasks.Task, b tasks.Brief, p place, c conversation, before *resumeState) agent.Spec {
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
		Model: cmp.Or(t.Options.Model, w.cfg.Model), Effort: t.Options.Effort, MaxUSD: t.Options.MaxUSD, Schema: b.Schema, Resume: c.session, History: c.said,
		Limit: t.Options.Limit, IdleLimit: w.cfg.IdleLimit, Thread: t.Thread, Repo: t.Repo,
		Header: []string{
			"thread " + t.Thread, "source " + t.Source + " " + t.Kind + " by " + t.Actor, "profile " + string(t.Profile),
			"where " + cmp.Or(where, "scratch"), "task " + t.Title(), "worker " + w.id,
		},
	}
}

// since leaves in the thread's directory what the change has become since an earlier head, and says so to the agent. Where that head cannot be
// had any more there is only the whole change.
func (w *Worker) since(ctx context.Context, c workspace.Clone, earlier, files string) (about string, err error) {
	s, err := w.workspace.Since(ctx, c, earlier, diffLimit)
	if errors.Is(err, workspace.ErrRef) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	path, err := leave(files, "since.diff", s.Text)
	if err != nil {
		return "", err
	}
	about = fmt.Sprintf(" What has changed in it since %s, an earlier head, is in %s", earlier, path)
	if s.Truncated {
		about += " (only the beginning)"
	}
	if s.Rewritten {
		about += "; its history was rewritten since, which is why git range-diff may come first there"
	}
	return about + ".", nil
}

// leave writes a file into the thread's directory. An agent may have written there before: os.Root does not follow its links out.
func leave(files, name, text string) (path string, err error) {
	root, err := os.OpenRoot(files)
	if err != nil {
		return "", fmt.Errorf("open directory for files: %w", err)
	}
	defer root.Close()
	_ = root.Remove(name) // an earlier run's, perhaps a link
	if err := root.WriteFile(name, []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("write %s: %w", name, err)
	}
	return filepath.Join(files, name), nil
}

// briefed asks a task's source what to tell the agent, and adds the pictures that are stored with the task.
func (w *Worker) briefed(ctx context.Context, s tasks.Source, t tasks.Task, files string) (tasks.Brief, error) {
	b, err := s.Brief(ctx, t, files)
	if err != nil {
		return tasks.Brief{}, fmt.Errorf("brief: %w", err)
	}
	if len(t.Pictures) == 0 {
		return b, nil
	}
	data, err := w.store.Pictures.Read(ctx, t.ID)
	if err != nil {
		return tasks.Brief{}, err
	}
	for i, p := range t.Pictures {
		if i >= len(data) {
			b.Prompt.Text = cmp.Or(b.Prompt.Text, t.Prompt) + fmt.Sprintf("\n\n(The picture %q was sent along, but is no longer stored.)", p.Name)
			continue
		}
		b.Prompt.Files = append(b.Prompt.Files, agent.File{Name: p.Name, Type: p.Type, Data: data[i]})
	}
	return b, nil
}
