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

// resumeState is the state of a task's earlier run: a checkpoint to resume from, or the reason why there is none. The
// zero value is that of a task that has not started before.
type resumeState struct {
	checkpoint
	at      time.Time
	crashed bool   // a worker died while it ran the task, perhaps after the checkpoint
	asLeft  bool   // the thread's directories are as that run left them
	lost    string // why the run cannot resume although there was an earlier run
}

// goesOn reports whether the task resumes from its earlier run.
func (p *resumeState) goesOn() bool { return p.Session.ID != "" && p.lost == "" }

// loadResumeState returns the state of the task's earlier run. It also takes over the thread's directories for this
// run.
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
			p.lost = "its worker died before anything was saved"
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
		p.lost = "its conversation could not be resumed"
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

// forget drops a checkpoint that cannot be restored, both the session and the work.
func (w *Worker) forget(id string, p *resumeState, err error) {
	w.log.Warn("restore checkpoint", "run", id, "err", err)
	p.lost = "its saved state cannot be restored"
}

// restore returns the clone for the task: the untouched clone of its earlier run, or one from the checkpoint. Without
// an earlier run it returns the thread's clone.
func (w *Worker) restore(ctx context.Context, id string, want workspace.Want, p *resumeState) (workspace.Clone, error) {
	if p.goesOn() && p.asLeft {
		kept := want
		kept.Keep = true
		if c, err := w.workspace.Checkout(ctx, kept); err != nil || !c.Fresh {
			return c, err
		}
		p.asLeft = false // it was damaged and has been set aside
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

// words returns the text for the agent about the earlier run: the prompt of a run that resumes, a part of the system
// prompt of one that starts over, and nothing if there was none.
func (p *resumeState) words(t tasks.Task, now place) string {
	if p.lost != "" {
		return "This task was started before and interrupted; " + p.lost +
			". Start from the beginning. Changes in your directory may be from the earlier run."
	}
	if !p.goesOn() {
		return ""
	}
	why := "by a restart of the worker"
	if p.Why != "" && !p.crashed {
		why = "(" + p.Why + ")"
	}
	say := []string{"You were interrupted " + why + ". Continue where you stopped."}
	if p.Answers != "" {
		say = append(say, "Your answers so far are saved, and people get them together with your next answer. Do not repeat them.")
	}
	if p.Left == "" || p.crashed {
		say = append(say, fmt.Sprintf("This conversation was last saved at %s UTC. If you did more after that, check the results.",
			p.at.UTC().Format("15:04:05 on 2006-01-02")))
	}
	switch {
	case p.asLeft:
	case t.Dir != "":
		say = append(say, "The local directory is not checkpointed and may differ on this machine. Inspect it first.")
	case t.Repo == "":
		say = append(say, "The scratch directory is not checkpointed. Inspect it first.")
	case p.Work == nil && now.Fresh:
		say = append(say, "Your commits and changes could not be saved. The clone is new, and they are lost.")
	case p.Work == nil:
		say = append(say, "Your commits and changes could not be saved. The clone may be older or newer than you remember. Inspect it first.")
	default:
		say = append(say, "Your clone was restored, except for files that git ignores. Files outside it are gone.")
		if len(p.Work.Missing) > 0 {
			say = append(say, "These files could not be saved: "+quoted(p.Work.Missing)+".")
		}
	}
	if p.Dir != now.Dir {
		say = append(say, fmt.Sprintf("Your working directory is %s now; it was %s.", now.Dir, p.Dir))
	}
	return strings.Join(say, " ")
}

// quoted lists names in quotes, because the agent chose the names of files.
func quoted(names []string) string {
	list := make([]string, len(names))
	for i, n := range names {
		list[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(list, ", ")
}
