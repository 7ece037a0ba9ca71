package worker

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// mailbox passes messages that are posted in a thread to the thread's live run. It takes the thread's next task from
// the store, asks the source for its brief, and hands its message to the agent. If the agent reads the message, the
// task belongs to the run and ends with it. All other tasks wait again when the run is over, for a separate run.
//
// Only the goroutine of carry takes tasks, so messages reach the agent in the order of the thread: through Next while
// the agent works, and through Idle when it has finished. Finding no task for Idle also closes the mailbox.
type mailbox struct {
	store  *store.Store
	tasks  *taskReader
	policy tasks.Policy
	log    *slog.Logger
	run    *run
	source tasks.Source
	task   tasks.Task // the task of the run

	files  string            // the thread's directory for files
	prompt string            // ID of the run's first message
	emit   func(agent.Event) // stores an event of the run

	hint   chan struct{}      // holds a token when there may be a task to take
	next   chan agent.Message // messages for Next
	idle   chan chan<- letter // requests of Idle
	closed chan struct{}      // closed by shut: no more tasks will be taken
	shut   func()

	stop    context.CancelFunc // stops the goroutines in carried
	carried sync.WaitGroup

	mu     sync.Mutex
	mail   []*mail
	begun  bool // the agent has read the first message
	broken bool // the agent began a new conversation after it had been given other messages
}

// mail is an absorbed task.
type mail struct {
	task    tasks.Task
	message string // ID of its message in this run; empty: an earlier run has read it
	taken   bool   // the agent has read it
}

// letter is the reply to Idle.
type letter struct {
	message agent.Message
	ok      bool
}

// mailbox returns the mailbox of a claimed task, with the tasks that its earlier runs absorbed.
func (w *Worker) mailbox(r *run, j job) (*mailbox, error) {
	m := &mailbox{
		store: w.store, tasks: w.tasks, policy: w.cfg.Policy, log: w.log, run: r, source: j.source, task: j.task, stop: func() {},
		hint: make(chan struct{}, 1), next: make(chan agent.Message), idle: make(chan chan<- letter), closed: make(chan struct{}),
	}
	m.shut = sync.OnceFunc(func() { close(m.closed) })
	before, err := w.store.Absorbed(r.detached, j.task.ID)
	if err != nil {
		return nil, err
	}
	for _, rec := range before {
		absorbed, err := tasks.ReadTask(rec)
		if err != nil { // it waits again after the run and then fails
			w.log.Warn("pass over absorbed task", "run", j.task.ID, "err", err)
			continue
		}
		m.mail = append(m.mail, &mail{task: absorbed, taken: true})
	}
	return m, nil
}

// resume gives back what an earlier run had absorbed if this run does not resume that one, because then no agent has
// read it.
func (m *mailbox) resume(before *resumeState) error {
	if before.goesOn() || len(m.mail) == 0 {
		return nil
	}
	if err := m.run.claim.GiveBack(m.run.detached, false, m.covered()...); err != nil {
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
	if m.run.claim.Record().Crashes > 0 {
		m.shut()
		if err := m.run.claim.GiveBack(m.run.detached, true); err != nil { // askers then see that their task waits
			m.log.Warn("close mailbox", "run", m.task.ID, "err", err)
		}
		return
	}
	ctx, stop := context.WithCancel(m.run.ctx)
	m.stop = stop
	m.carried.Go(func() { m.run.claim.Mail(ctx, m.look) })
	m.carried.Go(func() { m.carry(ctx); m.part(ctx) })
}

// close stops the mailbox. The set of absorbed tasks is final afterwards.
func (m *mailbox) close() {
	m.stop()
	m.carried.Wait()
}

// look makes carry look for a task.
func (m *mailbox) look() {
	select {
	case m.hint <- struct{}{}:
	default:
	}
}

// carry hands out messages one by one.
func (m *mailbox) carry(ctx context.Context) {
	all := func(string) bool { return true }
	first := "" // given to Idle, whose caller sends it: the agent must read it before another one is handed out
	for {
		var asked chan<- letter
		select {
		case <-ctx.Done():
			return
		case <-m.closed:
			return
		case <-m.hint:
			if first != "" && m.waits(func(id string) bool { return id == first }) {
				continue // another hint follows when the agent has read it
			}
		case asked = <-m.idle:
			if m.waits(all) { // the agent has something to do and will ask again
				asked <- letter{}
				continue
			}
		}
		message, ok := m.take(ctx, asked != nil)
		for handed := !ok || asked != nil; !handed; {
			select {
			case <-ctx.Done():
				return
			case <-m.closed:
				return
			case m.next <- message:
				handed = true
			case asked = <-m.idle:
				if handed = !m.waits(func(id string) bool { return id != message.ID }); !handed {
					asked <- letter{} // as above: the agent's message must not overtake this one
					asked = nil
				}
			}
		}
		if asked != nil {
			first = message.ID
			asked <- letter{message, ok}
		}
		if ok {
			m.tell(ctx, message.ID)
			m.look()
		}
	}
}

// waits reports whether the agent has been given a message with such an ID and has not read it yet.
func (m *mailbox) waits(such func(id string) bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.mail, func(l *mail) bool { return !l.taken && such(l.message) })
}

// Next waits for a message for the live run.
func (m *mailbox) Next(ctx context.Context) (agent.Message, bool) {
	select {
	case message := <-m.next:
		return message, true
	case <-m.closed:
	case <-ctx.Done():
	}
	return agent.Message{}, false
}

// Idle returns one more message for an agent that has finished, or closes the mailbox.
func (m *mailbox) Idle(ctx context.Context) (agent.Message, bool) {
	answer := make(chan letter, 1)
	select {
	case m.idle <- answer:
	case <-m.closed:
		return agent.Message{}, false
	case <-ctx.Done():
		return agent.Message{}, false
	}
	select {
	case l := <-answer: // carry replies to every request
		return l.message, l.ok
	case <-ctx.Done():
		return agent.Message{}, false
	}
}
