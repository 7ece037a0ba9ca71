package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/format"
)

// conversation is what a run goes on with.
type conversation struct {
	session *agent.Session // as the CLI saved it; nil: there is none
	thread  []agent.Turn   // requests and answers of the thread's earlier tasks
	lost    bool           // there was a session, and it cannot be read
	said    []agent.Turn   // these, and what an interrupted run had been told, for a CLI that cannot resume the session
}

// Bounds of what is kept of a thread in words, in bytes.
const (
	maxTurn = 8 << 10
	maxSaid = 64 << 10
)

// saved is what is stored beside a session.
type saved struct {
	Session agent.Session `json:"session"`
	Said    []agent.Turn  `json:"said,omitempty"`
}

// conversation finds what the task goes on with: the run that was interrupted in it, and had absorbed that, or else the thread's latest one.
func (w *Worker) conversation(ctx context.Context, t tasks.Task, b tasks.Brief, before *resumeState, absorbed []agent.Turn) (conversation, error) {
	var c conversation
	if !b.Fresh {
		stored, err := w.store.Threads.Session(ctx, t.Thread)
		var past saved
		if err == nil && json.Unmarshal(stored.Meta, &past) != nil {
			err = store.ErrDamaged
		}
		switch {
		case errors.Is(err, store.ErrNotFound):
		case errors.Is(err, store.ErrDamaged):
			w.log.Warn("thread goes on in a new conversation: its session cannot be read", "run", t.ID, "thread", t.Thread, "err", err)
			c.lost = true
		case err != nil:
			return c, fmt.Errorf("read session of thread %s: %w", t.Thread, err)
		default:
			past.Session.ID, past.Session.Data = stored.ID, stored.Data
			c.session, c.thread, c.said = &past.Session, past.Said, past.Said
		}
	}
	if before.Fresh {
		c.session = nil // it is what could not be continued
	}
	if before.goesOn() {
		// Its prompt will be to go on, and nobody would know with what.
		c.session, c.said = &before.Session, remember(c.thread, asked(t, absorbed)...)
	}
	return c, nil
}

// asked is all that a run was told: the task, and what it has absorbed.
func asked(t tasks.Task, absorbed []agent.Turn) []agent.Turn {
	return append([]agent.Turn{{Role: agent.User, Text: t.Prompt}}, absorbed...)
}

// keep stores the conversation for the thread's next task, with what this one was about. Without it that starts a new one, so failing is no
// failure.
func (c conversation) keep(r *run, w *Worker, t tasks.Task, b tasks.Brief, res agent.Result) {
	answer := format.Paragraphs(res.Text, res.Partial)
	said := remember(c.thread, append(asked(t, r.mail.said()), agent.Turn{Role: agent.Assistant, Text: answer})...)
	if b.Fresh || len(res.Session.Data) == 0 && answer == "" {
		return
	}
	err := r.claim.SaveSession(r.detached, store.Session{
		ID: res.Session.ID, Meta: format.JSON(saved{Session: res.Session, Said: said}), Data: res.Session.Data,
	})
	if err != nil {
		w.log.Warn("save session", "run", t.ID, "thread", t.Thread, "err", err)
	}
}

// remember adds to what was said, and forgets the oldest of it where it gets too much. The same words once more are not said twice: a task
// that was interrupted may have been remembered already.
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

// answers are those of the turns that a task's runs have finished. A run that goes on where another was interrupted does not give them
// again, so they go along with its checkpoint. Safe for concurrent use.
type answers struct {
	before string // of the task's earlier runs

	mu    sync.Mutex
	given string
}

// maxAnswers bounds them, in bytes; the log has all.
const maxAnswers = 512 << 10

// newAnswers begins with what earlier runs have answered.
func newAnswers(before *resumeState) *answers {
	if !before.goesOn() {
		return &answers{}
	}
	return &answers{before: before.Answers, given: before.Answers}
}

// after puts what earlier runs have answered before the answer of this one.
func (a *answers) after(text string) string {
	if a.before == "" {
		return text
	}
	return format.Paragraphs(a.before, text)
}

// note takes the answer of a turn from a run's event.
func (a *answers) note(e agent.Event) {
	if e.Kind != agent.TurnEnd || e.Error {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.given, _ = format.Head(format.Paragraphs(a.given, e.Text), maxAnswers)
}

func (a *answers) text() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.given
}
