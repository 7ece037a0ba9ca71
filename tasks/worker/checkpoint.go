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

// packFor bounds the packing of a clone while its run is live. Packing takes a fraction of a second unless the clone
// is huge or hostile. During a drain the bound is Timing.Pack.
const packFor = time.Minute

// checkpoint is the state of a run from which another run can resume, apart from its session's data and the bundle of
// its clone.
type checkpoint struct {
	Session agent.Session     `json:"session"`
	Work    *workspace.Bundle `json:"work,omitempty"`    // nil: it had no clone, or the clone could not be packed
	Answers string            `json:"answers,omitempty"` // answers of its finished turns, which the agent will not repeat
	Dir     string            `json:"dir"`               // working directory
	Why     string            `json:"why,omitempty"`     // why it was interrupted, as a clause; empty: its worker stopped
	Fresh   bool              `json:"fresh,omitempty"`   // the conversation cannot be resumed; all other fields but Dir are empty
	Left    string            `json:"left,omitempty"`    // set by a clean hand-back: identifies the directories as the run left them
}

// checkpoints makes a run save a checkpoint from time to time.
func (w *Worker) checkpoints(r *run, p place, s *agent.Spec) {
	s.CheckpointEvery = w.timing.Checkpoint
	prompt := s.Prompt.ID
	s.Checkpoint = func(ctx context.Context, session agent.Session) {
		if session.Holds(prompt) {
			// Read the answers after the session: an answer that is in neither would be lost, and one that is in both
			// is at worst given twice.
			w.keep(ctx, r, p, checkpoint{Session: session, Answers: r.answers.text()}, packFor)
		}
	}
}

// handOver saves the state of an interrupted run for the run that resumes it. If the CLI had not read the prompt, an
// earlier checkpoint is better, because the agent could not know what to continue.
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

// keep saves a checkpoint. If the clone cannot be packed, the conversation is saved without it, and the prompt of the
// next run says so.
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
