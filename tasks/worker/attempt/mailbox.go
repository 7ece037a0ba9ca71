package attempt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/format"
	"github.com/errand-fleet/errand/tasks/record"
	"github.com/errand-fleet/errand/tasks/rights"
)

// mailbox passes messages that are posted in a thread to the thread's live run. It takes the thread's next task from
// the store, asks the source for its brief, and hands its message to the agent. If the agent reads the message, the
// task belongs to the run and ends with it. All other tasks wait again when the run is over, for a separate run.
//
// Messages reach the agent in the order of the thread: through Next while the agent works, and through Idle when it
// has finished. Finding no task for Idle also closes the mailbox.
type mailbox struct {
	store  *store.Store
	policy rights.Policy
	log    *slog.Logger
	briefs *briefer
	run    *run
	source tasks.Source
	task   tasks.Task // the task of the run

	files  string            // the thread's directory for files
	prompt string            // ID of the run's first message
	emit   func(agent.Event) // stores an event of the run

	hint   chan struct{} // holds a token when there may be a task to take
	closed chan struct{} // closed by shut: no more tasks will be taken
	shut   func()

	ctx        context.Context // of the work in background
	stop       context.CancelFunc
	background sync.WaitGroup

	resting atomic.Bool    // Idle waits for its turn
	turn    sync.Mutex     // held while a message is taken and handed out
	ready   *agent.Message // taken and not handed out; guarded by turn
	atRest  string         // ID of the latest message from Idle, whose caller sends it; guarded by turn

	mu     sync.Mutex
	mail   []*mail
	begun  bool // the agent has read the first message
	broken bool // the agent began a new conversation after it had been given other messages
}

// mail is an absorbed task.
type mail struct {
	task    tasks.Task
	message string // ID of its message in this run; "" if an earlier run has read it
	read    bool   // the agent has read it
}

// mailbox returns the mailbox of a claimed task, with the tasks that its earlier runs absorbed.
func (p *Processor) mailbox(r *run, j job) (*mailbox, error) {
	m := &mailbox{
		store: p.Store, policy: p.Policy, log: p.Log, briefs: p.briefs, run: r, source: j.source, task: j.task,
		stop: func() {},
		hint: make(chan struct{}, 1), closed: make(chan struct{}),
	}
	m.shut = sync.OnceFunc(func() { close(m.closed) })
	before, err := m.store.Absorbed(r.Detached, j.task.ID)
	if err != nil {
		return nil, err
	}
	for _, rec := range before {
		absorbed, err := record.Task(rec)
		if err != nil { // it waits again after the run and then fails
			m.log.Warn("pass over absorbed task", "run", j.task.ID, "err", err)
			continue
		}
		m.mail = append(m.mail, &mail{task: absorbed, read: true})
	}
	return m, nil
}

// resume gives back what an earlier run had absorbed if this run does not resume that one, because then no agent has
// read it.
func (m *mailbox) resume(before *resumeState) error {
	if before.goesOn() || len(m.mail) == 0 {
		return nil
	}
	if err := m.run.Claim.GiveBack(m.run.Detached, false, m.covered()...); err != nil {
		return err
	}
	m.mail = nil
	return nil
}

// open starts taking tasks for a run that is about to start. A run with a new conversation or an answer schema takes
// none: it is one answer to one question. Nor does a task whose worker died, because an absorbed task may have caused
// that.
func (m *mailbox) open(b briefing, prompt string, emit func(agent.Event)) {
	m.files, m.prompt, m.emit = b.files, prompt, emit
	if tasks.MergeKey(m.task) == "" || b.Fresh || b.Schema != nil {
		m.shut()
		return
	}
	if m.run.Claim.Record().Crashes > 0 {
		m.shut()
		if err := m.run.Claim.GiveBack(m.run.Detached, true); err != nil { // askers then see that their task waits
			m.log.Warn("close mailbox", "run", m.task.ID, "err", err)
		}
		return
	}
	m.ctx, m.stop = context.WithCancel(m.run.Ctx)
	m.background.Go(func() { m.run.Claim.Mail(m.ctx, m.look) })
}

// close stops the mailbox. The set of absorbed tasks is final afterwards.
func (m *mailbox) close() {
	m.stop()
	m.background.Wait()
}

// look makes Next look for a task.
func (m *mailbox) look() { signal(m.hint) }

// Next waits for a message for the live run.
func (m *mailbox) Next(ctx context.Context) (agent.Message, bool) {
	for {
		select {
		case <-m.hint:
			if message, ok := m.next(ctx); ok {
				return message, true
			}
		case <-m.closed:
			return agent.Message{}, false
		case <-ctx.Done():
			return agent.Message{}, false
		}
	}
}

// next returns the thread's next message, unless Idle waits for one, or the agent has to read one from Idle first.
// Another hint follows then.
func (m *mailbox) next(ctx context.Context) (agent.Message, bool) {
	m.turn.Lock()
	defer m.turn.Unlock()
	if m.unread(func(id string) bool { return id == m.atRest }) || !m.take(ctx, false) || m.resting.Load() {
		return agent.Message{}, false
	}
	return m.handOut(), true
}

// Idle returns one more message for an agent that has finished, or closes the mailbox. If the agent has yet to read
// another message, Idle does neither, and the agent will ask again.
func (m *mailbox) Idle(ctx context.Context) (agent.Message, bool) {
	m.resting.Store(true)
	m.turn.Lock()
	defer m.turn.Unlock()
	m.resting.Store(false)
	if m.unread(func(id string) bool { return m.ready == nil || id != m.ready.ID }) {
		m.look() // Next has to hand out what is ready
		return agent.Message{}, false
	}
	if !m.take(ctx, true) {
		return agent.Message{}, false
	}
	m.atRest = m.ready.ID
	return m.handOut(), true
}

// handOut returns the ready message. m.turn is held.
func (m *mailbox) handOut() agent.Message {
	message := *m.ready
	m.ready = nil
	m.announce(message.ID)
	m.look()
	return message
}

// unread reports whether the agent has yet to read a message with such an ID.
func (m *mailbox) unread(such func(id string) bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.mail, func(l *mail) bool { return !l.read && such(l.message) })
}

// take takes the thread's next task whose brief succeeds, unless a message is ready, and reports whether one is ready
// then. If last is set and no task waits, it closes the mailbox. m.turn is held.
func (m *mailbox) take(ctx context.Context, last bool) bool {
	event := format.JSON(agent.Event{
		Kind: tasks.Absorbed, ToolID: m.task.ID, Time: time.Now(),
		Text: "The run of task " + display.TaskID(m.task.ID) + " takes this into account.",
	})
	for {
		select {
		case <-m.closed:
			return false
		default:
		}
		if m.ready != nil {
			return true
		}
		rec, ok, err := m.run.Claim.Take(ctx, last, event)
		if err != nil {
			m.logFailure(ctx, "", err) // the next hint tries again, or the claim is lost
			return false
		}
		if !ok {
			if last {
				m.shut()
			}
			return false
		}
		t, message, err := m.brief(ctx, rec)
		if err != nil {
			if !m.decline(ctx, rec.ID, err) {
				return false
			}
			continue
		}
		m.mu.Lock()
		m.mail = append(m.mail, &mail{task: t, message: message.ID})
		m.mu.Unlock()
		m.ready = &message
	}
}

// decline handles a task that cannot be absorbed, and reports whether to try the next one. A task that its source
// refuses ends. Any other task waits again, and the mailbox is closed, because nothing may overtake it.
func (m *mailbox) decline(ctx context.Context, id string, why error) (more bool) {
	input, refused := errors.AsType[*tasks.InputError](why)
	if !refused {
		if err := m.run.Claim.GiveBack(ctx, true, id); err != nil {
			m.logFailure(ctx, id, err)
		}
		m.logFailure(ctx, id, why)
		m.shut()
		return false
	}
	if err := m.refuse(ctx, id, input.Sentence); err != nil {
		m.logFailure(ctx, id, err)
		return false
	}
	return true
}

// refuse ends a taken task.
func (m *mailbox) refuse(ctx context.Context, id, sentence string) error {
	// Only waiting tasks can be refused. No other worker can claim the task meanwhile, because this run has the thread.
	if err := m.run.Claim.GiveBack(ctx, false, id); err != nil {
		return err
	}
	reason := m.policy.Redactor.String(sentence)
	_, err := record.EndWaiting(ctx, m.store, id, tasks.Ending{Kind: tasks.Refused, Reason: reason, At: time.Now()})
	return err
}

func (m *mailbox) logFailure(ctx context.Context, id string, err error) {
	if ctx.Err() == nil {
		m.log.Warn("absorb task", "run", m.task.ID, "thread", m.task.Thread, "task", id, "err", err)
	}
}

// errOwnRun means that a task cannot be absorbed.
var errOwnRun = errors.New("the task needs a separate run")

// brief returns the message for an absorbed task. It leaves out the system prompt that the source would give a
// separate run. If another person wrote the message, it says who.
func (m *mailbox) brief(ctx context.Context, rec store.Record) (tasks.Task, agent.Message, error) {
	t, err := record.Task(rec)
	if err != nil {
		return t, agent.Message{}, err
	}
	t, _, err = m.briefs.permit(ctx, t)
	if err != nil {
		return t, agent.Message{}, err
	}
	b, err := m.briefs.brief(ctx, m.source, t, m.files)
	if err != nil {
		return t, agent.Message{}, err
	}
	if t.Profile != m.task.Profile || b.Fresh || b.Diff || b.Schema != nil {
		return t, agent.Message{}, errOwnRun
	}
	message := b.Prompt
	message.Text = cmp.Or(message.Text, t.Prompt)
	if t.Actor != m.task.Actor {
		message.Text = m.policy.People.NameOf(t) + " says:\n\n" + message.Text
	}
	message.ID = uuid.NewString() // the agent confirms the message by this ID
	return t, message, nil
}

// announce reports a message that is handed to the agent: in the run's events, and to its author.
func (m *mailbox) announce(message string) {
	m.mu.Lock()
	i := slices.IndexFunc(m.mail, func(l *mail) bool { return l.message == message })
	t := m.mail[i].task
	m.mu.Unlock()
	m.emit(agent.Event{
		Kind: tasks.Absorbed, Text: t.Prompt, Tool: m.policy.People.NameOf(t), ToolID: t.ID, Time: time.Now(),
	})
	can := m.source.Capabilities()
	if can.Quiet || !can.TalkAbout(t) {
		return
	}
	m.background.Go(func() { // do not make the agent wait for the source
		first, err := m.run.Claim.First(m.ctx, "absorbed-"+format.Hash(t.ID))
		if err == nil && first {
			err = can.Say(m.ctx, t, "I'll take that into account.")
		}
		if err != nil {
			m.logFailure(m.ctx, t.ID, fmt.Errorf("say so: %w", err))
		}
	})
}

// markRead records that the agent has read a message. If it reads the first one again, the conversation could not be
// resumed and a new one has begun, without the messages that the agent was given before. They, and everything after
// them, wait for a separate run.
func (m *mailbox) markRead(message string) {
	m.mu.Lock()
	again, before := m.begun && message == m.prompt, m.broken
	m.begun = m.begun || message == m.prompt
	for _, l := range m.mail {
		if l.message == message {
			l.read = true
		} else if again && l.message != "" {
			l.read, m.broken = false, true
		}
	}
	broken := m.broken && !before
	m.mu.Unlock()
	if broken {
		m.shut()
		m.background.Go(m.giveBackUnread)
	}
	m.look()
}

// giveBackUnread gives back the tasks whose messages went to a conversation that no longer exists.
func (m *mailbox) giveBackUnread() {
	m.turn.Lock()
	defer m.turn.Unlock()
	m.mu.Lock()
	var lost []string
	for _, l := range m.mail {
		if !l.read {
			lost = append(lost, l.task.ID)
		}
	}
	m.mu.Unlock()
	if err := m.run.Claim.GiveBack(m.ctx, true, lost...); err != nil {
		m.logFailure(m.ctx, "", err) // they wait again after the run
	}
}

// covered returns the tasks whose messages the run has read. They end with it.
func (m *mailbox) covered() (ids []string) {
	for _, t := range m.absorbed() {
		ids = append(ids, t.ID)
	}
	return ids
}

// turns returns the messages of the covered tasks as turns of a conversation.
func (m *mailbox) turns() (turns []agent.Turn) {
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
		if l.read {
			list = append(list, l.task)
		}
	}
	return list
}

// heldIn returns the covered tasks whose message is in a session: a run that resumes the session covers them, too.
func (m *mailbox) heldIn(s agent.Session) (ids []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.mail {
		if l.read && (l.message == "" || s.Holds(l.message)) {
			ids = append(ids, l.task.ID)
		}
	}
	return ids
}
