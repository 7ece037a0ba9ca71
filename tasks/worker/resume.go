package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/format"
	"github.com/errand-fleet/errand/tasks/worker/place"
	"github.com/errand-fleet/errand/workspace"
)

const (
	// packFor bounds the packing of a clone while its run is live. Packing takes a fraction of a second unless the
	// clone is huge or hostile. During a drain the bound is Timing.Pack.
	packFor    = time.Minute
	maxTurn    = 8 << 10   // bytes of a turn that is stored for a thread
	maxSaid    = 64 << 10  // bytes of all of them
	maxAnswers = 512 << 10 // bytes of the stored answers of a run; the log has all of them
)

// checkpoint is the state of a run from which another run can resume, apart from its session's data and the bundle of
// its clone.
type checkpoint struct {
	Session agent.Session `json:"session"`
	// of the main clone; nil without one, or if it could not be packed
	Work *workspace.Bundle `json:"work,omitempty"`
	// answers of its finished turns, which the agent will not repeat
	Answers string `json:"answers,omitempty"`
	// of its conversation before it, if the session of the thread expires; see tasks.Conversation
	Repos []string  `json:"repos"`
	Dir   string    `json:"dir"`             // working directory
	Why   string    `json:"why,omitempty"`   // why it was interrupted, as a clause; "" if its worker stopped
	Fresh bool      `json:"fresh,omitempty"` // the conversation cannot be resumed; all other fields but Dir are empty
	Also  []further `json:"also,omitempty"`  // the clones of its further repositories
	// set by a clean hand-back: identifies the directories as the run left them
	Left string `json:"left,omitempty"`
}

// checkpointer saves the state of runs from which others resume, and loads it. It is safe for concurrent use.
type checkpointer struct {
	*Config

	changes *changeKeeper
}

// schedule makes a run save a checkpoint from time to time. given holds the answers of the run's turns.
func (k *checkpointer) schedule(r *run, p place.Place, given *answers, s *agent.Spec) {
	s.CheckpointEvery = k.Timing.Checkpoint
	prompt := s.Prompt.ID
	s.Checkpoint = func(ctx context.Context, session agent.Session) {
		if session.Holds(prompt) {
			// Read the answers after the session: an answer that is in neither would be lost, and one that is in both
			// is at worst given twice.
			k.save(ctx, r, p, checkpoint{Session: session, Answers: given.text(), Repos: r.repos}, packFor)
		}
	}
}

// handOver saves the state of an interrupted run for the run that resumes it. If the CLI had not read the prompt, an
// earlier checkpoint is better, because the agent could not know what to continue.
func (k *checkpointer) handOver(r *run, p place.Place, s agent.Spec, cause error) {
	res := r.result
	c := checkpoint{Session: res.Session, Answers: res.Text, Repos: r.repos}
	if failed, ok := errors.AsType[*retryError](cause); ok {
		c.Why, c.Fresh = failed.Why, failed.fresh
	}
	if c.Fresh {
		k.save(r.Detached, r, place.Place{Dir: p.Dir}, checkpoint{Fresh: true}, 0)
		return
	}
	if !res.Session.Holds(s.Prompt.ID) {
		return
	}
	if res.Resources.Stuck == 0 {
		var err error
		c.Left, err = k.Workspace.Leave(r.Claim.Thread())
		k.warn(err, "leave directories", "run", r.Claim.ID())
	}
	k.save(r.Detached, r, p, c, k.Timing.Pack)
}

// save saves a checkpoint. If the clone cannot be packed, the conversation is saved without it, and the prompt of the
// next run says so.
func (k *checkpointer) save(ctx context.Context, r *run, p place.Place, c checkpoint, patience time.Duration) {
	c.Dir = p.Dir
	saved := store.Checkpoint{
		Session: store.Session{ID: c.Session.ID, Data: c.Session.Data}, Holds: r.mail.heldIn(c.Session),
	}
	packing, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if p.Clone.Dir != "" {
		for i, one := range p.Clones() {
			b, err := k.Workspace.Snapshot(packing, one.Clone,
				max(store.MaxCheckpoint-len(c.Session.Data)-len(saved.Work), 0))
			if ctx.Err() != nil {
				return // the run is over
			}
			work := &b
			if err != nil {
				k.Log.Warn("keep work", "run", r.Claim.ID(), "repo", one.Clone.Repo, "err", err)
				work = nil
			}
			if i > 0 {
				c.Also = append(c.Also, further{work, len(b.Data)})
			} else {
				c.Work = work
			}
			saved.Work = append(saved.Work, b.Data...)
		}
	}
	saved.Session.Meta = format.JSON(c)
	if err := r.Claim.SaveCheckpoint(ctx, saved); err != nil && ctx.Err() == nil {
		k.Log.Warn("save checkpoint", "run", r.Claim.ID(), "thread", r.Claim.Thread(), "err", err)
	}
	k.changes.checkpoint(packing, r, p) // last: the state to resume from is more important
}

// resumeState is the state of a task's earlier run: a checkpoint to resume from, or the reason why it cannot resume.
// The zero value is that of a task that has not started before.
type resumeState struct {
	checkpoint
	at      time.Time
	crashed bool   // a worker died while it ran the task, perhaps after the checkpoint
	asLeft  bool   // the thread's directories are as that run left them, but for
	aside   []int  // the numbers of the clones that were damaged and have been set aside
	lost    string // why the run cannot resume although there was an earlier run
}

// goesOn reports whether the task resumes from its earlier run.
func (p *resumeState) goesOn() bool { return p.Session.ID != "" && p.lost == "" }

// load returns the state of the task's earlier run. It also takes over the thread's directories for this
// run.
func (k *checkpointer) load(ctx context.Context, rec store.Record) (*resumeState, error) {
	left, err := k.Workspace.Enter(rec.Thread)
	if err != nil {
		return nil, err
	}
	p := &resumeState{crashed: rec.Crashes > 0}
	saved, err := k.Store.Checkpoint(ctx, rec.ID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		if rec.Crashes > 0 {
			p.lost = "its worker died before anything was saved"
		}
		return p, nil
	case errors.Is(err, store.ErrDamaged):
		k.giveUp(rec.ID, p, err)
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
		k.giveUp(rec.ID, p, err)
		return p, nil
	}
	for i := range slices.Backward(p.Also) {
		at := max(0, len(saved.Work)-p.Also[i].Size) // what is damaged does not have its sum
		if p.Also[i].Work != nil {
			p.Also[i].Work.Data = saved.Work[at:]
		}
		saved.Work = saved.Work[:at]
	}
	if p.Work != nil {
		p.Work.Data = saved.Work
	}
	p.asLeft = left != "" && left == p.Left
	k.Log.Info("checkpoint found", "run", rec.ID, "thread", rec.Thread, "attempt", rec.Attempt, "saved", p.at,
		"left", p.asLeft)
	return p, nil
}

// giveUp drops a checkpoint that cannot be restored, both the session and the work.
func (k *checkpointer) giveUp(id string, p *resumeState, err error) {
	k.Log.Warn("restore checkpoint", "run", id, "err", err)
	p.lost = "its saved state cannot be restored"
}

// restore returns the clone for the task: the untouched clone of its earlier run, or one from the checkpoint. Without
// an earlier run it returns the thread's clone.
func (k *checkpointer) restore(
	ctx context.Context, id string, want workspace.Want, p earlierClone,
) (workspace.Clone, error) {
	if p.goesOn() && p.asLeft {
		kept := want
		kept.Keep = true
		if c, err := k.Workspace.Checkout(ctx, kept); err != nil || !c.Fresh {
			return c, err
		}
		p.aside = append(p.aside, p.n)
	}
	if p.goesOn() && p.work != nil {
		c, err := k.Workspace.Restore(ctx, want, *p.work)
		if !errors.Is(err, workspace.ErrBundle) {
			return c, err
		}
		k.giveUp(id, p.resumeState, err)
	}
	return k.Workspace.Checkout(ctx, want)
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
	if p.Left == "" || p.crashed {
		say = append(say,
			fmt.Sprintf("This conversation was last saved at %s UTC. If you did more after that, check the results.",
				p.at.UTC().Format("15:04:05 on 2006-01-02")))
	}
	switch {
	case p.leftAt(0):
	case t.Dir != "":
		say = append(say, "The local directory is not checkpointed and may differ on this machine. Inspect it first.")
	case t.Repo == "":
		say = append(say, "The scratch directory is not checkpointed. Inspect it first.")
	case p.Work == nil && now.Fresh:
		say = append(say, "Your commits and changes could not be saved. The clone is new, and they are lost.")
	case p.Work == nil:
		say = append(say,
			"Your commits and changes could not be saved. The clone may be older or newer than you "+
				"remember. Inspect it first.")
	default:
		say = append(say, "Your clone was restored, except for files that git ignores. Files outside it are gone.")
		if len(p.Work.Missing) > 0 {
			missing := strings.Trim(fmt.Sprintf("%q", p.Work.Missing), "[]")
			say = append(say, "These files could not be saved: "+missing+".")
		}
	}
	for i, one := range now.Also {
		switch work := p.earlierClone(i+1, nil).work; {
		case p.leftAt(i + 1):
		case work == nil:
			say = append(say, "Your commits and changes in "+one.Clone.Repo+
				" could not be saved. Inspect its clone first.")
		case len(work.Missing) > 0:
			missing := strings.Trim(fmt.Sprintf("%q", work.Missing), "[]")
			say = append(say, fmt.Sprintf("These files of %s could not be saved: %s.", one.Clone.Repo, missing))
		}
	}
	if p.Dir != now.Dir {
		say = append(say, fmt.Sprintf("Your working directory is %s now; it was %s.", now.Dir, p.Dir))
	}
	return strings.Join(say, " ")
}

// conversation is what a run continues.
type conversation struct {
	session *agent.Session // as the CLI saved it, or nil
	thread  []agent.Turn   // requests and answers of the thread's earlier tasks
	lost    bool           // there is a session, but it cannot be read
	said    []agent.Turn   // thread and the prompts of an interrupted run, for a CLI that cannot resume the session
	repos   []string       // see tasks.Conversation
}

// saved is stored with a session.
type saved struct {
	tasks.Conversation

	Session agent.Session `json:"session"`
	Said    []agent.Turn  `json:"said,omitempty"`
}

// conversation returns what the task continues: its interrupted run, which had absorbed the given turns, or the
// thread's latest session.
func (w *Worker) conversation(
	ctx context.Context, t tasks.Task, b tasks.Brief, before *resumeState, absorbed []agent.Turn,
) (conversation, error) {
	c := conversation{repos: []string{}}
	if !b.Fresh {
		stored, err := w.cfg.Store.Threads.Session(ctx, t.Thread)
		var past saved
		if err == nil && json.Unmarshal(stored.Meta, &past) != nil {
			err = store.ErrDamaged
		}
		switch {
		case errors.Is(err, store.ErrNotFound):
		case errors.Is(err, store.ErrDamaged):
			w.cfg.Log.Warn("thread goes on in a new conversation: its session cannot be read", "run", t.ID, "thread",
				t.Thread, "err", err)
			c.lost = true
		case err != nil:
			return c, fmt.Errorf("read session of thread %s: %w", t.Thread, err)
		default:
			past.Session.ID, past.Session.Data = stored.ID, stored.Data
			c.session, c.thread, c.said, c.repos = &past.Session, past.Said, past.Said, past.Repos
		}
	}
	if before.Fresh {
		c.session = nil // this session could not be resumed
	}
	if before.goesOn() {
		// The prompt only says to continue, so the history has to contain the request.
		if c.session == nil {
			c.repos = before.Repos // the interrupted run's session has what was lost
		}
		c.session, c.said = &before.Session, remember(c.thread, asked(t, absorbed)...)
	}
	return c, nil
}

// asked returns everything that a run was asked: its task and the absorbed turns.
func asked(t tasks.Task, absorbed []agent.Turn) []agent.Turn {
	return append([]agent.Turn{{Role: agent.User, Text: t.Prompt}}, absorbed...)
}

// save stores the conversation for the thread's next task. Errors are only logged: without it, the next task starts a
// new conversation.
func (c conversation) save(r *run, t tasks.Task, b tasks.Brief) {
	res := r.result
	answer := format.Paragraphs(res.Text, res.Partial)
	said := remember(c.thread, append(asked(t, r.mail.turns()), agent.Turn{Role: agent.Assistant, Text: answer})...)
	if b.Fresh || len(res.Session.Data) == 0 && answer == "" {
		return
	}
	for _, repo := range t.Places() {
		if repo = strings.ToLower(repo); c.repos != nil && !slices.Contains(c.repos, repo) {
			c.repos = append(c.repos, repo)
		}
	}
	notes := saved{tasks.Conversation{Repos: c.repos}, res.Session, said}
	err := r.Claim.SaveSession(r.Detached, store.Session{
		ID: res.Session.ID, Meta: format.JSON(notes), Data: res.Session.Data,
	})
	r.worker.cfg.warn(err, "save session", "run", t.ID, "thread", t.Thread)
}

// remember appends turns, and drops the oldest ones if there are too many. It skips a repeated turn, because an
// interrupted task may have been added before.
func remember(said []agent.Turn, more ...agent.Turn) []agent.Turn {
	said = append([]agent.Turn(nil), said...)
	for _, turn := range more {
		turn.Text, _ = format.Head(turn.Text, maxTurn)
		if n := len(said); turn.Text == "" || n > 0 && said[n-1].Role == turn.Role && said[n-1].Text == turn.Text {
			continue
		}
		said = append(said, turn)
	}
	size := 0
	for i, turn := range slices.Backward(said) {
		if size += len(turn.Text); size > maxSaid {
			return said[i+1:]
		}
	}
	return said
}
