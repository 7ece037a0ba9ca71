package attempt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/format"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/tasks/worker/logline"
)

const (
	maxTurn = 8 << 10  // bytes of a turn that is stored for a thread
	maxSaid = 64 << 10 // bytes of all of them
)

// conversation is what a run continues.
type conversation struct {
	session *agent.Session // as the CLI saved it, or nil
	thread  []agent.Turn   // requests and answers of the thread's earlier tasks
	lost    bool           // there is a session, but it cannot be read
	said    []agent.Turn   // thread and the prompts of an interrupted run, for a CLI that cannot resume the session
	repos   []string       // see [rights.Conversation]
	began   string         // see [place.Place.Began]; "": anywhere
}

// saved is stored with a session.
type saved struct {
	rights.Conversation

	Session agent.Session `json:"session"`
	Said    []agent.Turn  `json:"said,omitempty"`
	Began   string        `json:"began,omitempty"` // see [place.Place.Began]
}

// conversation returns what the task continues: its interrupted run, which had absorbed the given turns, or the
// thread's latest session.
func (p *Processor) conversation(
	ctx context.Context, t tasks.Task, b tasks.Brief, before *resumeState, absorbed []agent.Turn,
) (conversation, error) {
	c := conversation{repos: []string{}}
	if !b.Fresh {
		var err error
		if c, err = p.threadConversation(ctx, t); err != nil {
			return c, err
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
		c.began = before.Began
		c.session, c.said = &before.Session, remember(c.thread, asked(t, absorbed)...)
	}
	return c, nil
}

// threadConversation returns the conversation of the thread's latest session, or a new one.
func (p *Processor) threadConversation(ctx context.Context, t tasks.Task) (conversation, error) {
	past, err := p.session(ctx, t.Thread)
	if errors.Is(err, store.ErrNotFound) {
		return conversation{repos: []string{}}, nil
	}
	if errors.Is(err, store.ErrDamaged) {
		p.Log.Warn("thread goes on in a new conversation: its session cannot be read", "run", t.ID, "thread",
			t.Thread, "err", err)
		return conversation{repos: []string{}, lost: true}, nil
	}
	if err != nil {
		return conversation{}, fmt.Errorf("read session of thread %s: %w", t.Thread, err)
	}
	return conversation{
		session: &past.Session, thread: past.Said, said: past.Said, repos: past.Repos, began: past.Began,
	}, nil
}

// session returns the latest session of a thread.
func (p *Processor) session(ctx context.Context, thread string) (saved, error) {
	stored, err := p.Store.Threads.Session(ctx, thread)
	if err != nil {
		return saved{}, err
	}
	var past saved
	if json.Unmarshal(stored.Meta, &past) != nil {
		return saved{}, store.ErrDamaged
	}
	past.Session.ID, past.Session.Data = stored.ID, stored.Data
	return past, nil
}

// asked returns everything that a run was asked: its task and the absorbed turns.
func asked(t tasks.Task, absorbed []agent.Turn) []agent.Turn {
	return append([]agent.Turn{{Role: agent.User, Text: t.Prompt}}, absorbed...)
}

// saveConversation stores the conversation for the thread's next task. A fresh one is not continued. Errors are only
// logged: without it, the next task starts a new conversation.
func (p *Processor) saveConversation(r *run, c conversation, t tasks.Task, s setting) {
	res := r.result
	answer := format.Paragraphs(res.Text, res.Partial)
	if s.Fresh || len(res.Session.Data) == 0 && answer == "" {
		return
	}
	said := remember(c.thread, append(asked(t, r.mail.turns()), agent.Turn{Role: agent.Assistant, Text: answer})...)
	repos := c.repos
	places := t.Places()
	for _, one := range s.place.Clones() {
		places = append(places, one.Submodules...)
	}
	for _, repo := range places {
		if repo = strings.ToLower(repo); repos != nil && !slices.Contains(repos, repo) {
			repos = append(repos, repo)
		}
	}
	notes := saved{rights.Conversation{Repos: repos}, res.Session, said, s.place.Began()}
	err := r.Claim.SaveSession(r.Detached, store.Session{
		ID: res.Session.ID, Meta: format.JSON(notes), Data: res.Session.Data,
	})
	logline.Warn(p.Log, err, "save session", "run", t.ID, "thread", t.Thread)
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
