package attempt

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/internal/format"
	"github.com/errand-fleet/errand/tasks/worker/logline"
	"github.com/errand-fleet/errand/tasks/worker/place"
	"github.com/errand-fleet/errand/workspace"
)

// packFor bounds the packing of a clone while its run is live. Packing takes a fraction of a second unless the clone is
// huge or hostile. During a drain the bound is Timing.Pack.
const packFor = time.Minute

// checkpoint is the state of a run from which another run can resume, apart from its session's data and the bundle of
// its clone.
type checkpoint struct {
	Session agent.Session `json:"session"`
	// Work is the state of the main clone; nil without one, or if it could not be packed.
	Work *workspace.Bundle `json:"work,omitempty"`
	// Answers are those of its finished turns, which the agent will not repeat.
	Answers string `json:"answers,omitempty"`
	// Repos are those of its conversation before it, if the session of the thread expires; see [rights.Conversation].
	Repos []string `json:"repos"`
	// Dir is the directory in which the agent started.
	Dir string `json:"dir"`
	// Began is as in [place.Place.Began].
	Began string `json:"began,omitempty"`
	// Why says why it was interrupted, as a clause; "" if its worker stopped.
	Why string `json:"why,omitempty"`
	// Fresh says that the conversation cannot be resumed; all other fields but Dir are empty.
	Fresh bool `json:"fresh,omitempty"`
	// Also are the clones of its further repositories.
	Also []further `json:"also,omitempty"`
	// Directories is set by a clean hand-back: it identifies the directories as the run left them.
	Directories string `json:"left,omitempty"`
}

// further is the state of a further clone. The data of all bundles is stored together.
type further struct {
	Work *workspace.Bundle `json:"work,omitempty"` // nil: it could not be packed
	Size int               `json:"size,omitempty"` // of its data
}

// checkpointer saves the state of runs from which others resume, and loads it. It is safe for concurrent use.
type checkpointer struct {
	store     *store.Store
	workspace *workspace.Workspace
	changes   *changeKeeper
	pack      time.Duration // Timing.Pack
	log       *slog.Logger
}

// during returns the function that saves a checkpoint of a live run, once its agent has read the message with the ID
// prompt. given holds the answers of the run's turns.
func (k *checkpointer) during(
	r *run, s setting, prompt string, given *answers,
) func(ctx context.Context, session agent.Session) {
	return func(ctx context.Context, session agent.Session) {
		if !session.Holds(prompt) {
			return
		}
		// Read the answers after the session: an answer that is in neither would be lost, and one that is in both is at
		// worst given twice.
		c := checkpoint{Session: session, Answers: given.text(), Repos: s.conversation.repos}
		k.save(ctx, r, s.place, c, packFor)
	}
}

// handOver saves the state of an interrupted run for the run that resumes it. If the CLI had not read the prompt, an
// earlier checkpoint is better, because the agent could not know what to continue.
func (k *checkpointer) handOver(r *run, s setting, prompt string, cause error) {
	res := r.result
	c := checkpoint{Session: res.Session, Answers: res.Text, Repos: s.conversation.repos}
	if failed, ok := errors.AsType[*retryError](cause); ok {
		c.Why, c.Fresh = failed.Why, failed.fresh
	}
	if c.Fresh {
		k.save(r.Detached, r, place.Place{Dir: s.place.Start()}, checkpoint{Fresh: true}, 0)
		return
	}
	if !res.Session.Holds(prompt) {
		return
	}
	if res.Resources.Stuck == 0 {
		var err error
		c.Directories, err = k.workspace.Leave(r.Claim.Thread())
		logline.Warn(k.log, err, "leave directories", "run", r.Claim.ID())
	}
	k.save(r.Detached, r, s.place, c, k.pack)
}

// save saves a checkpoint. If the clone cannot be packed, the conversation is saved without it, and the prompt of the
// next run says so.
func (k *checkpointer) save(ctx context.Context, r *run, p place.Place, c checkpoint, patience time.Duration) {
	c.Dir, c.Began = p.Start(), p.Began()
	saved := store.Checkpoint{
		Session: store.Session{ID: c.Session.ID, Data: c.Session.Data}, Holds: r.mail.heldIn(c.Session),
	}
	packing, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if p.Clone.Dir != "" {
		for i, one := range p.Clones() {
			work, err := k.workspace.Snapshot(packing, one.Clone,
				max(store.MaxCheckpoint-len(c.Session.Data)-len(saved.Work), 0))
			if ctx.Err() != nil {
				return // the run is over
			}
			packed := &work
			if err != nil {
				k.log.Warn("keep work", "run", r.Claim.ID(), "repo", one.Clone.Repo, "err", err)
				packed = nil
			}
			if i == 0 {
				c.Work = packed
			} else {
				c.Also = append(c.Also, further{packed, len(work.Data)})
			}
			saved.Work = append(saved.Work, work.Data...)
		}
	}
	saved.Session.Meta = format.JSON(c)
	if err := r.Claim.SaveCheckpoint(ctx, saved); err != nil && ctx.Err() == nil {
		k.log.Warn("save checkpoint", "run", r.Claim.ID(), "thread", r.Claim.Thread(), "err", err)
	}
	k.changes.checkpoint(packing, r, p) // last: the state to resume from is more important
}
