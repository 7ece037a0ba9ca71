package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/workspace"
)

// resumeState is what is left of a task's earlier run: a checkpoint to go on from, or the knowledge that there is none. The zero past is that
// of a task that was not begun before.
type resumeState struct {
	checkpoint
	at      time.Time
	crashed bool   // a worker died on the task, perhaps after the checkpoint
	asLeft  bool   // the thread's directories are as that run left them
	lost    string // why there is nothing to go on from, although there was a run
}

// goesOn reports whether the task goes on where its earlier run stopped.
func (p *resumeState) goesOn() bool { return p.Session.ID != "" && p.lost == "" }

// loadResumeState finds out what is left of the task's earlier run. From here on the thread's directories are this run's.
func (w *Worker) loadResumeState(ctx context.Context, rec store.Record) (*resumeState, error) {
	left, err := w.workspace.Enter(rec.Thread)
	if err != nil {
		return nil, err
	}
	p := &resumeState{crashed: rec.Crashes > 0}
	saved, err := w.store.Checkpoint(ctx, rec.ID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		if rec.Crashes > 0 {
			p.lost = "its worker died before anything was kept"
		}
		return p, nil
	case errors.Is(err, store.ErrDamaged):
		w.forget(rec.ID, p, err)
		return p, nil
	case err != nil:
		return nil, err
	}
	err = json.Unmarshal(saved.Session.Meta, &p.checkpoint)
	p.Session.ID, p.Session.Data, p.at = saved.Session.ID, saved.Session.Data, saved.At
	if err == nil && p.Fresh {
		p.lost = "its conversation could not be continued"
		return p, nil
	}
	if err == nil {
		err = p.Session.Check()
	}
	if err != nil {
		w.forget(rec.ID, p, err)
		return p, nil
	}
	if p.Work != nil {
		p.Work.Data = saved.Work
	}
	p.asLeft = left != "" && left == p.Left
	w.log.Info("checkpoint found", "run", rec.ID, "thread", rec.Thread, "attempt", rec.Attempt, "saved", p.at, "left", p.asLeft)
	return p, nil
}

// forget gives up a checkpoint that cannot be restored: neither its session nor its work is.
func (w *Worker) forget(id string, p *resumeState, err error) {
	w.log.Warn("restore checkpoint", "run", id, "err", err)
	p.lost = "what had been kept of it cannot be restored"
}

// restore gives the task its clone: the one that its earlier run left, if it is there untouched, or else one from the checkpoint. A task
// without a past gets it as the thread has it.
func (w *Worker) restore(ctx context.Context, id string, want workspace.Want, p *resumeState) (workspace.Clone, error) {
	if p.goesOn() && p.asLeft {
		kept := want
		kept.Keep = true
		if c, err := w.workspace.Checkout(ctx, kept); err != nil || !c.Fresh {
			return c, err
		}
		p.asLeft = false // it was spoilt, and is set aside
	}
	if p.goesOn() && p.Work != nil {
		c, err := w.workspace.Restore(ctx, want, *p.Work)
		if !errors.Is(err, workspace.ErrBundle) {
			return c, err
		}
		w.forget(id, p, err)
	}
	return w.workspace.Checkout(ctx, want)
}

// words are what the agent is told of its past: the prompt of a run that goes on, a part of the context of one that begins again, and
// nothing when there was none.
func (p *resumeState) words(t tasks.Task, now place) string {
	if p.lost != "" {
		return "This task was begun before and interrupted; " + p.lost +
			". Start from the beginning. What you find changed in your directory may be from then."
	}
	if !p.goesOn() {
		return ""
	}
	why := "by a restart of the worker"
	if p.Why != "" && !p.crashed {
		why = "(" + p.Why + ")"
	}
	say := []string{"You were interrupted " + why + ". Go on where you stopped."}
	if p.Answers != "" {
		say = append(say, "What you have answered so far is kept, and people get it with what you answer now: do not repeat it.")
	}
	if p.Left == "" || p.crashed {
		say = append(say, fmt.Sprintf("This conversation was last kept at %s UTC: if you did more than it says, look what came of that.",
			p.at.UTC().Format("15:04:05 on 2006-01-02")))
	}
	switch {
	case p.asLeft:
	case t.Dir != "":
		say = append(say, "Of the local directory nothing is kept, and on another machine it is another one: look at it first.")
	case t.Repo == "":
		say = append(say, "Of the scratch directory nothing is kept: look at what is there first.")
	case p.Work == nil && now.Fresh:
		say = append(say, "Your commits and changes could not be kept. The clone is new, and they are lost.")
	case p.Work == nil:
		say = append(say, "Your commits and changes could not be kept. What is in the clone may be older or newer than you know it: look at it first.")
	default:
		say = append(say, "Your clone was put back as it was, but for the files that git ignores. What was outside of it is gone.")
		if len(p.Work.Missing) > 0 {
			say = append(say, "These could not be kept: "+quoted(p.Work.Missing)+".")
		}
	}
	if p.Dir != now.Dir {
		say = append(say, fmt.Sprintf("Your working directory is %s now; it was %s.", now.Dir, p.Dir))
	}
	return strings.Join(say, " ")
}

// quoted lists names; those of files are whatever the agent made up.
func quoted(names []string) string {
	list := make([]string, len(names))
	for i, n := range names {
		list[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(list, ", ")
}
