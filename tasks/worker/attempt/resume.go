package attempt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/worker/place"
	"github.com/errand-fleet/errand/workspace"
)

// resumeState is the state of a task's earlier run: a checkpoint to resume from, or the reason why it cannot resume.
// The zero value is that of a task that has not started before.
type resumeState struct {
	checkpoint
	at        time.Time
	crashed   bool   // a worker died while it ran the task, perhaps after the checkpoint
	untouched bool   // the thread's directories are as that run left them, but for
	damaged   []int  // the numbers of the clones that were damaged and have been set aside
	lost      string // why the run cannot resume although there was an earlier run
}

// goesOn reports whether the task resumes from its earlier run.
func (p *resumeState) goesOn() bool { return p.Session.ID != "" && p.lost == "" }

// load returns the state of the task's earlier run. It also takes over the thread's directories for this run.
func (k *checkpointer) load(ctx context.Context, rec store.Record) (*resumeState, error) {
	left, err := k.workspace.Enter(rec.Thread)
	if err != nil {
		return nil, err
	}
	p := &resumeState{crashed: rec.Crashes > 0}
	saved, err := k.store.Checkpoint(ctx, rec.ID)
	if errors.Is(err, store.ErrNotFound) {
		if p.crashed {
			p.lost = "its worker died before anything was saved"
		}
		return p, nil
	}
	if errors.Is(err, store.ErrDamaged) {
		k.drop(rec.ID, p, err)
		return p, nil
	}
	if err != nil {
		return nil, err
	}

	p.checkpoint, err = decodeCheckpoint(saved)
	if err != nil {
		k.drop(rec.ID, p, err)
		return p, nil
	}
	if p.Fresh {
		p.lost = "its conversation could not be resumed"
		return p, nil
	}
	p.at, p.untouched = saved.At, left != "" && left == p.Directories
	k.log.Info("checkpoint found", "run", rec.ID, "thread", rec.Thread, "attempt", rec.Attempt, "saved", p.at,
		"left", p.untouched)
	return p, nil
}

// decodeCheckpoint returns a checkpoint with its data: the session and the bundles of the clones, which are stored
// behind each other.
func decodeCheckpoint(saved store.Checkpoint) (checkpoint, error) {
	var c checkpoint
	if err := json.Unmarshal(saved.Session.Meta, &c); err != nil {
		return checkpoint{}, err
	}
	if c.Fresh {
		return c, nil
	}
	c.Session.ID, c.Session.Data = saved.Session.ID, saved.Session.Data
	if err := c.Session.Check(); err != nil {
		return checkpoint{}, err
	}
	rest := saved.Work
	for i := range slices.Backward(c.Also) {
		at := max(0, len(rest)-c.Also[i].Size) // what is damaged does not have its sum
		if c.Also[i].Work != nil {
			c.Also[i].Work.Data = rest[at:]
		}
		rest = rest[:at]
	}
	if c.Work != nil {
		c.Work.Data = rest
	}
	return c, nil
}

// drop drops a checkpoint that cannot be restored, both the session and the work.
func (k *checkpointer) drop(id string, p *resumeState, err error) {
	k.log.Warn("restore checkpoint", "run", id, "err", err)
	p.lost = "its saved state cannot be restored"
}

// restore returns the clone for the task: the untouched clone of its earlier run, or one from the checkpoint. Without
// an earlier run it returns the thread's clone.
func (k *checkpointer) restore(
	ctx context.Context, id string, want workspace.Want, p earlierClone,
) (workspace.Clone, error) {
	if p.goesOn() && p.untouched {
		kept := want
		kept.Keep = true
		if c, err := k.workspace.Checkout(ctx, kept); err != nil || !c.Fresh {
			return c, err
		}
		p.damaged = append(p.damaged, p.n)
	}
	if p.goesOn() && p.work != nil {
		c, err := k.workspace.Restore(ctx, want, *p.work)
		if !errors.Is(err, workspace.ErrBundle) {
			return c, err
		}
		k.drop(id, p.resumeState, err)
	}
	return k.workspace.Checkout(ctx, want)
}

// words returns the text for the agent about the earlier run: the prompt of a run that resumes, a part of the system
// prompt of one that starts over, and nothing if there was none.
func (p *resumeState) words(t tasks.Task, now place.Place) string {
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
		say = append(say,
			"Your answers so far are saved, and people get them together with your next answer. Do not repeat them.")
	}
	if p.Directories == "" || p.crashed {
		say = append(say,
			fmt.Sprintf("This conversation was last saved at %s UTC. If you did more after that, check the results.",
				p.at.UTC().Format("15:04:05 on 2006-01-02")))
	}
	say = append(say, p.aboutDir(t, now)...)
	say = append(say, p.aboutFurther(now)...)
	if p.Dir != now.Start() {
		say = append(say, fmt.Sprintf("Your working directory is %s now; it was %s.", now.Start(), p.Dir))
	}
	return strings.Join(say, " ")
}

// aboutDir says what has become of the working directory.
func (p *resumeState) aboutDir(t tasks.Task, now place.Place) []string {
	if p.untouchedAt(0) {
		return nil
	}
	if t.Dir != "" {
		return []string{"The local directory is not checkpointed and may differ on this machine. Inspect it first."}
	}
	if t.Repo == "" {
		return []string{"The scratch directory is not checkpointed. Inspect it first."}
	}
	if p.Work == nil && now.Fresh {
		return []string{"Your commits and changes could not be saved. The clone is new, and they are lost."}
	}
	if p.Work == nil {
		return []string{"Your commits and changes could not be saved. The clone may be older or newer than you " +
			"remember. Inspect it first."}
	}
	say := []string{"Your clone was restored, except for files that git ignores. Files outside it are gone."}
	if len(p.Work.Missing) > 0 {
		say = append(say, "These files could not be saved: "+quoted(p.Work.Missing)+".")
	}
	return say
}

// aboutFurther says what has become of the clones of further repositories.
func (p *resumeState) aboutFurther(now place.Place) (say []string) {
	for i, one := range now.Also {
		if p.untouchedAt(i + 1) {
			continue
		}
		work := p.earlierClone(i+1, nil).work
		if work == nil {
			say = append(say, "Your commits and changes in "+one.Clone.Repo+
				" could not be saved. Inspect its clone first.")
		} else if len(work.Missing) > 0 {
			say = append(say,
				fmt.Sprintf("These files of %s could not be saved: %s.", one.Clone.Repo, quoted(work.Missing)))
		}
	}
	return say
}

// quoted lists names in quotation marks.
func quoted(names []string) string { return strings.Trim(fmt.Sprintf("%q", names), "[]") }

// earlierClone is the state in which an earlier run has left one clone.
type earlierClone struct {
	*resumeState
	n    int // of the clone
	work *workspace.Bundle
	with []string // other repositories whose code the run may write into the clone
}

// earlierClone returns the state in which the earlier run has left clone n of a task. The main clone is 0.
func (p *resumeState) earlierClone(n int, with []string) earlierClone {
	e := earlierClone{p, n, p.Work, with}
	if n > 0 {
		e.work = nil
		if n <= len(p.Also) {
			e.work = p.Also[n-1].Work
		}
	}
	return e
}

// untouchedAt reports whether a clone is as the earlier run left it.
func (p *resumeState) untouchedAt(n int) bool { return p.untouched && !slices.Contains(p.damaged, n) }
