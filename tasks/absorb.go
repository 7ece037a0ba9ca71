package tasks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/google/uuid"
)

// kin is what two tasks of a thread have in common if the run of one may absorb the other; empty for what is never absorbed. Only what
// people wait for is: automatic work is about one thing.
func kin(t Task) string {
	if t.Class != Interactive {
		return ""
	}
	return key(t.Source, string(t.Profile), t.Repo, t.Ref, t.Dir, string(mustJSON(t.Options)))
}

// take takes the next task that can be briefed. With last and none there it closes the mailbox.
func (m *mailbox) take(ctx context.Context, last bool) (agent.Message, bool) {
	event := mustJSON(agent.Event{Kind: Absorbed, ToolID: m.task.ID, Text: "The run of task " + m.task.ID + " takes this into account.", Time: time.Now()})
	for {
		select {
		case <-m.closed: // just now
			return agent.Message{}, false
		default:
		}
		rec, ok, err := m.run.claim.Take(ctx, last, event)
		if err != nil {
			m.complain(ctx, "", err) // it is tried again, or the claim is lost
			return agent.Message{}, false
		}
		if !ok {
			if last {
				m.shut()
			}
			return agent.Message{}, false
		}
		t, message, err := m.brief(ctx, rec)
		if err == nil {
			m.mu.Lock()
			m.mail = append(m.mail, &mail{task: t, message: message.ID})
			m.mu.Unlock()
			return message, true
		}
		if !m.decline(ctx, rec.ID, err) {
			return agent.Message{}, false
		}
	}
}

// decline deals with a task that cannot be taken in, and reports whether the next one can be looked at. One that its source refuses ends. Any
// other waits again, and the mailbox is closed, because nothing must overtake it.
func (m *mailbox) decline(ctx context.Context, id string, why error) (more bool) {
	if ctx.Err() != nil {
		return false // the run is over, and with it what it has taken
	}
	var err error
	input, refused := errors.AsType[*InputError](why)
	if refused {
		err = m.refuse(ctx, id, input)
	} else {
		m.complain(ctx, id, why)
		err = m.run.claim.GiveBack(ctx, true, id)
		m.shut()
	}
	if err != nil {
		m.complain(ctx, id, err)
	}
	return refused && err == nil
}

func (m *mailbox) complain(ctx context.Context, id string, err error) {
	if ctx.Err() == nil {
		m.worker.log.Warn("absorb task", "run", m.task.ID, "thread", m.task.Thread, "task", id, "err", err)
	}
}

// refuse ends a task that its source does not let run. It waits again for that moment, in which nobody can claim it: its thread is ours.
func (m *mailbox) refuse(ctx context.Context, id string, why *InputError) error {
	if err := m.run.claim.GiveBack(ctx, false, id); err != nil {
		return err
	}
	reason := m.worker.cfg.Policy.Redactor.String(why.Sentence)
	_, err := endWaiting(ctx, m.worker.store, id, Ending{Kind: Refused, Reason: reason, At: time.Now()})
	return err
}

// errOwnRun keeps a task out of a live run.
var errOwnRun = errors.New("it needs a run of its own")

// brief makes the message of an absorbed task. The context that the source would give a run is not in it; somebody else's words say whose
// they are.
func (m *mailbox) brief(ctx context.Context, rec store.Record) (t Task, _ agent.Message, err error) {
	if t, err = taskOf(rec); err != nil {
		return t, agent.Message{}, err
	}
	b, err := m.worker.briefed(ctx, m.source, t, m.files)
	if err != nil {
		return t, agent.Message{}, err
	}
	if !plain(b) {
		return t, agent.Message{}, errOwnRun
	}
	message := b.Prompt
	message.Text = or(message.Text, t.Prompt)
	if t.Actor != m.task.Actor {
		message.Text = m.worker.cfg.Policy.People.Name(t.Source, t.Actor) + " says:\n\n" + message.Text
	}
	message.ID = uuid.NewString() // by which the agent says that it has taken it up
	return t, message, nil
}

// plain reports whether a task's message can go into the conversation of another.
func plain(b Brief) bool { return !b.Fresh && !b.Diff && b.Schema == nil }

// tell tells of a message that was handed to the agent: among the run's events, and to who wrote it.
func (m *mailbox) tell(ctx context.Context, message string) {
	m.mu.Lock()
	var t Task
	for _, l := range m.mail {
		if l.message == message {
			t = l.task
		}
	}
	m.mu.Unlock()
	m.emit(agent.Event{Kind: Absorbed, Text: t.Prompt, Tool: t.Actor, ToolID: t.ID, Time: time.Now()})
	to, ok := talker(m.source, t)
	if some, is := m.source.(Selective); !ok || is && !some.Assures(t) {
		return
	}
	m.carried.Go(func() { // the agent does not wait for the source's answer
		first, err := m.run.claim.First(ctx, "absorbed-"+key(t.ID))
		if err == nil && first {
			err = to.Say(ctx, t, "I'll take that into account.")
		}
		if err != nil {
			m.complain(ctx, t.ID, fmt.Errorf("say so: %w", err))
		}
	})
}
