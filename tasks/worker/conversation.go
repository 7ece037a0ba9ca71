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

// conversation is what a run continues.
type conversation struct {
	session *agent.Session // as the CLI saved it; nil: none
	thread  []agent.Turn   // requests and answers of the thread's earlier tasks
	lost    bool           // there is a session, but it cannot be read
	said    []agent.Turn   // thread and the prompts of an interrupted run, for a CLI that cannot resume the session
}

// Bounds of the turns that are stored for a thread, in bytes.
const (
	maxTurn = 8 << 10
	maxSaid = 64 << 10
)

// saved is stored with a session.
type saved struct {
	Session agent.Session `json:"session"`
	Said    []agent.Turn  `json:"said,omitempty"`
}

// conversation returns what the task continues: its interrupted run, which had absorbed the given turns, or the
// thread's latest session.
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
		c.session = nil // this session could not be resumed
	}
	if before.goesOn() {
		// The prompt only says to continue, so the history has to contain the request.
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
	said := remember(c.thread, append(asked(t, r.mail.said()), agent.Turn{Role: agent.Assistant, Text: answer})...)
	if b.Fresh || len(res.Session.Data) == 0 && answer == "" {
		return
	}
	err := r.claim.SaveSession(r.detached, store.Session{
		ID: res.Session.ID, Meta: format.JSON(saved{Session: res.Session, Said: said}), Data: res.Session.Data,
	})
	if err != nil {
		r.log.Warn("save session", "run", t.ID, "thread", t.Thread, "err", err)
	}
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

// answers collects the answers of a task's finished turns. A resumed run does not repeat them, so they are part of
// its checkpoint. It is safe for concurrent use.
type answers struct {
	before string // answers of the task's earlier runs

	mu    sync.Mutex
	given string
}

// maxAnswers bounds the stored answers, in bytes; the log has all of them.
const maxAnswers = 512 << 10

// newAnswers starts with the answers of earlier runs.
func newAnswers(before *resumeState) *answers {
	if !before.goesOn() {
		return &answers{}
	}
	return &answers{before: before.Answers, given: before.Answers}
}

// after returns the answers of earlier runs followed by text.
func (a *answers) after(text string) string {
	if a.before == "" {
		return text
	}
	return format.Paragraphs(a.before, text)
}

// note records the answer of a turn.
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
