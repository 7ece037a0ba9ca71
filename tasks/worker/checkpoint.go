package worker

import (
	"context"
	"errors"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/internal/format"
	"github.com/errand-fleet/errand/workspace"
)

// packFor is how long a clone may take to be packed while its run lives. It takes a fraction of a second, unless it is huge or hostile. A
// drain has less patience: Timing.Pack.
const packFor = time.Minute

// checkpoint is what is remembered of a run, beside its session and the bundle of its clone.
type checkpoint struct {
	Session agent.Session     `json:"session"`
	Work    *workspace.Bundle `json:"work,omitempty"`    // nil: it had no clone, or nothing of it could be kept
	Answers string            `json:"answers,omitempty"` // of the turns it had finished: nobody will give them again
	Dir     string            `json:"dir"`               // where it worked
	Why     string            `json:"why,omitempty"`     // it was interrupted, in a clause; empty: its worker had to stop
	Fresh   bool              `json:"fresh,omitempty"`   // its conversation cannot be continued, so there is nothing else in here
	Left    string            `json:"left,omitempty"`    // handed back in peace: by which its worker finds the directories as they were
}

// checkpoints lets a run keep what it has come to, every now and then.
func (w *Worker) checkpoints(r *run, p place, s *agent.Spec) {
	s.CheckpointEvery = w.timing.Checkpoint
	prompt := s.Prompt.ID
	s.Checkpoint = func(ctx context.Context, session agent.Session) {
		if session.Holds(prompt) {
			// After the session was read: an answer that is in neither would be lost, one that is in both is said twice at worst.
			w.keep(ctx, r, p, checkpoint{Session: session, Answers: r.answers.text()}, packFor)
		}
	}
}

// handOver keeps what an interrupted run has come to for whoever goes on with it. If the CLI had not even read the prompt, an earlier
// checkpoint is the better one: told to go on, nobody would know with what.
func (w *Worker) handOver(r *run, p place, s agent.Spec, res agent.Result, cause error) {
	c := checkpoint{Session: res.Session, Answers: res.Text}
	if failed, ok := errors.AsType[*retryError](cause); ok {
		c.Why, c.Fresh = failed.Why, failed.fresh
	}
	if c.Fresh {
		w.keep(r.detached, r, place{Dir: p.Dir}, checkpoint{Fresh: true}, 0)
		return
	}
	if !res.Session.Holds(s.Prompt.ID) {
		return
	}
	if res.Resources.Stuck == 0 {
		var err error
		if c.Left, err = w.workspace.Leave(r.claim.Thread()); err != nil {
			w.log.Warn("leave directories", "run", r.claim.ID(), "err", err)
		}
	}
	w.keep(r.detached, r, p, c, w.timing.Pack)
}

// keep saves a checkpoint. A clone that cannot be packed does not keep the conversation from being saved; who goes on in it is told.
func (w *Worker) keep(ctx context.Context, r *run, p place, c checkpoint, patience time.Duration) {
	c.Dir = p.Dir
	saved := store.Checkpoint{Session: store.Session{ID: c.Session.ID, Data: c.Session.Data}, Holds: r.mail.held(c.Session)}
	if p.Clone.Dir != "" {
		packing, cancel := context.WithTimeout(ctx, patience)
		b, err := w.workspace.Snapshot(packing, p.Clone, max(store.MaxCheckpoint-len(c.Session.Data), 0))
		cancel()
		switch {
		case ctx.Err() != nil:
			return // the run is over
		case err != nil:
			w.log.Warn("keep work", "run", r.claim.ID(), "err", err)
		default:
			c.Work, saved.Work = &b, b.Data
		}
	}
	saved.Session.Meta = format.JSON(c)
	if err := r.claim.SaveCheckpoint(ctx, saved); err != nil && ctx.Err() == nil {
		w.log.Warn("save checkpoint", "run", r.claim.ID(), "thread", r.claim.Thread(), "err", err)
	}
}
