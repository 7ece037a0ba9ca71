package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/format"
	"github.com/google/uuid"
)

// take takes the thread's next task whose brief succeeds. If last is set and no task waits, it closes the mailbox.
func (m *mailbox) take(ctx context.Context, last bool) (agent.Message, bool) {
	event := format.JSON(agent.Event{Kind: tasks.Absorbed, ToolID: m.task.ID, Text: "The run of task " + m.task.ID + " takes this into account.", Time: time.Now()})
	for {
		select {
		case <-m.closed: // closed in the meantime
			return agent.Message{}, false
		default:
		}
		rec, ok, err := m.run.claim.Take(ctx, last, event)
		if err != nil {
			m.complain(ctx, "", err) // the next hint tries again, or the claim is lost
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

// decline handles a task that cannot be absorbed, and reports whether to try the next one. A task that its source
// refuses ends. Any other task waits again, and the mailbox is closed, because nothing may overtake it.
func (m *mailbox) decline(ctx context.Context, id string, why error) (more bool) {
	if ctx.Err() != nil {
		return false // the run is over, and its tasks wait again
	}
	var err error
	input, refused := errors.AsType[*tasks.InputError](why)
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
		m.log.Warn("absorb task", "run", m.task.ID, "thread", m.task.Thread, "task", id, "err", err)
	}
}

// refuse ends a task that its source refused. Only waiting tasks can be ended this way, so it gives the task back
// first; no other worker can claim it, because this run has the thread.
func (m *mailbox) refuse(ctx context.Context, id string, why *tasks.InputError) error {
	if err := m.run.claim.GiveBack(ctx, false, id); err != nil {
		return err
	}
	reason := m.policy.Redactor.String(why.Sentence)
	_, err := tasks.EndWaiting(ctx, m.store, id, tasks.Ending{Kind: tasks.Refused, Reason: reason, At: time.Now()})
	return err
}

// errOwnRun means that a task cannot be absorbed.
var errOwnRun = errors.New("the task needs a separate run")

// brief returns the message for an absorbed task. It leaves out the system prompt that the source would give a
// separate run. If another person wrote the message, it says who.
func (m *mailbox) brief(ctx context.Context, rec store.Record) (t tasks.Task, _ agent.Message, err error) {
	if t, err = tasks.ReadTask(rec); err != nil {
		return t, agent.Message{}, err
	}
	b, err := m.tasks.brief(ctx, m.source, t, m.files)
	if err != nil {
		return t, agent.Message{}, err
	}
	if !plain(b) {
		return t, agent.Message{}, errOwnRun
	}
	message := b.Prompt
	message.Text = cmp.Or(message.Text, t.Prompt)
	if t.Actor != m.task.Actor {
		message.Text = m.policy.People.Name(t.Source, t.Actor) + " says:\n\n" + message.Text
	}
	message.ID = uuid.NewString() // the agent confirms the message by this ID
	return t, message, nil
}

// plain reports whether a task's message can join the conversation of another task.
func plain(b tasks.Brief) bool { return !b.Fresh && !b.Diff && b.Schema == nil }

// tell reports a message that was handed to the agent: in the run's events, and to its author.
func (m *mailbox) tell(ctx context.Context, message string) {
	m.mu.Lock()
	var t tasks.Task
	for _, l := range m.mail {
		if l.message == message {
			t = l.task
		}
	}
	m.mu.Unlock()
	m.emit(agent.Event{Kind: tasks.Absorbed, Text: t.Prompt, Tool: t.Actor, ToolID: t.ID, Time: time.Now()})
	to, ok := talker(m.source, t)
	if some, is := m.source.(tasks.Selective); !ok || is && !some.Assures(t) {
		return
	}
	m.carried.Go(func() { // do not make the agent wait for the source
		first, err := m.run.claim.First(ctx, "absorbed-"+format.Hash(t.ID))
		if err == nil && first {
			err = to.Say(ctx, t, "I'll take that into account.")
		}
		if err != nil {
			m.complain(ctx, t.ID, fmt.Errorf("say so: %w", err))
		}
	})
}

// took records that the agent has read a message. If it reads the first one again, the conversation could not be
// resumed and a new one has begun, without the messages that the agent was given before. They, and everything after
// them, wait for a separate run.
func (m *mailbox) took(message string) {
	m.mu.Lock()
	again := m.begun && message == m.prompt
	m.begun = m.begun || message == m.prompt
	for _, l := range m.mail {
		switch {
		case l.message == message:
			l.taken = true
		case again && l.message != "":
			l.taken, m.broken = false, true
		}
	}
	broken := m.broken
	m.mu.Unlock()
	if broken {
		m.shut()
	}
	m.look()
}

// part gives back the tasks whose messages went to a conversation that no longer exists.
func (m *mailbox) part(ctx context.Context) {
	m.mu.Lock()
	var lost []string
	for _, l := range m.mail {
		if m.broken && !l.taken {
			lost = append(lost, l.task.ID)
		}
	}
	m.mu.Unlock()
	if len(lost) == 0 {
		return
	}
	if err := m.run.claim.GiveBack(ctx, true, lost...); err != nil {
		m.complain(ctx, "", err) // they wait again after the run
	}
}

// covered returns the tasks whose messages the run has read. They end with it.
func (m *mailbox) covered() (ids []string) {
	for _, t := range m.absorbed() {
		ids = append(ids, t.ID)
	}
	return ids
}

// said returns the messages of the covered tasks as turns of a conversation.
func (m *mailbox) said() (turns []agent.Turn) {
	for _, t := range m.absorbed() {
		turns = append(turns, agent.Turn{Role: agent.User, Text: t.Prompt})
	}
	return turns
}

func (m *mailbox) absorbed() (list []tasks.Task) {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.mail {
		if l.taken {
			list = append(list, l.task)
		}
	}
	return list
}

// held returns the covered tasks whose message is in a session: a run that resumes the session covers them, too.
func (m *mailbox) held(s agent.Session) (ids []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.mail {
		if l.taken && (l.message == "" || s.Holds(l.message)) {
			ids = append(ids, l.task.ID)
		}
	}
	return ids
}
