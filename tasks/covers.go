package tasks

import (
	"context"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
)

// endWaiting ends a task that waits, and with it those that its earlier run has taken up. It is false when the task does not wait.
func endWaiting(ctx context.Context, s *store.Store, id string, e Ending) (bool, error) {
	with, err := s.Absorbed(ctx, id)
	if err != nil {
		return false, err
	}
	for _, rec := range with {
		e.Covers = append(e.Covers, rec.ID)
	}
	return s.EndWaiting(ctx, id, mustJSON(e))
}

// took notes that the agent has taken up a message. When it takes up the first one again, the conversation could not be resumed and began
// anew: what the agent was given before is not in it. That waits for a run of its own, and all else behind it.
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

// part lets all wait that was given to a conversation that is no more.
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
		m.complain(ctx, "", err) // they wait again when the run is over
	}
}

// covered are the tasks whose messages the run has taken up: its ending is theirs.
func (m *mailbox) covered() (ids []string) {
	for _, t := range m.absorbed() {
		ids = append(ids, t.ID)
	}
	return ids
}

// said are their messages, as turns of a conversation.
func (m *mailbox) said() (turns []agent.Turn) {
	for _, t := range m.absorbed() {
		turns = append(turns, agent.Turn{Role: agent.User, Text: t.Prompt})
	}
	return turns
}

func (m *mailbox) absorbed() (list []Task) {
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

// held are those of them whose message is in a session: who goes on with it goes on with them.
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
