package worker

import (
	"context"
	"slices"
	"sync"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
)

// mailbox brings what is said in a thread into the thread's live run. It takes the next task of the thread from the store, lets the source
// brief it, and hands its message to the agent. What the agent is seen to take up belongs to the run from then on, and ends with it; all
// else waits again when the run is over, and makes a run of its own.
//
// Its carrier alone takes, so that messages reach the agent in the order of the thread: those for Next, and at rest, when the last look
// also closes the mailbox, those for Idle.
type mailbox struct {
	worker *Worker
	run    *run
	source tasks.Source
	task   tasks.Task // whose run it is

	files  string            // the thread's directory for files
	prompt string            // ID of the run's first message
	emit   func(agent.Event) // stores an event of the run

	hint   chan struct{}      // holds a token when there may be something to take
	next   chan agent.Message // to Next
	idle   chan chan<- letter // from Idle
	closed chan struct{}      // closed by shut: nothing will be taken any more
	shut   func()

	stop    context.CancelFunc // ends all of the following
	carried sync.WaitGroup

	mu     sync.Mutex
	mail   []*mail
	begun  bool // the agent has taken up the first message
	broken bool // and has begun anew after it was given others
}

// mail is an absorbed task.
type mail struct {
	task    tasks.Task
	message string // ID of its message in this run; empty: an earlier run of the task has taken it up
	taken   bool   // the agent has taken it up
}

// letter is what Idle gets.
type letter struct {
	message agent.Message
	ok      bool
}

// mailbox makes the mailbox of a claimed task, with what its earlier runs had absorbed.
func (w *Worker) mailbox(r *run, t tasks.Task, s tasks.Source) (*mailbox, error) {
	m := &mailbox{
		worker: w, run: r, source: s, task: t, stop: func() {},
		hint: make(chan struct{}, 1), next: make(chan agent.Message), idle: make(chan chan<- letter), closed: make(chan struct{}),
	}
	m.shut = sync.OnceFunc(func() { close(m.closed) })
	before, err := w.store.Absorbed(r.detached, t.ID)
	if err != nil {
		return nil, err
	}
	for _, rec := range before {
		absorbed, err := tasks.ReadTask(rec)
		if err != nil { // it waits again after the run, and ends by itself
			w.log.Warn("pass over absorbed task", "run", t.ID, "err", err)
			continue
		}
		m.mail = append(m.mail, &mail{task: absorbed, taken: true})
	}
	return m, nil
}

// resume parts with what an earlier run had absorbed if this one does not go on with that run: then nobody has read it yet.
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

// open begins to carry, for a run that is about to start. One that begins a conversation of its own, or whose answer has to have a form, takes
// nothing in: it is one answer to one question. Nor does one with which a worker has died: what it took in may have done that.
func (m *mailbox) open(b tasks.Brief, files, prompt string, emit func(agent.Event)) {
	m.files, m.prompt, m.emit = files, prompt, emit
	if tasks.MergeKey(m.task) == "" || b.Fresh || b.Schema != nil {
		m.shut()
		return
	}
	if m.run.claim.Record().Crashes > 0 {
		m.shut()
		if err := m.run.claim.GiveBack(m.run.detached, true); err != nil { // who asks meanwhile hears that he waits
			m.worker.log.Warn("close mailbox", "run", m.task.ID, "err", err)
		}
		return
	}
	ctx, stop := context.WithCancel(m.run.ctx)
	m.stop = stop
	m.carried.Go(func() { m.run.claim.Mail(ctx, m.look) })
	m.carried.Go(func() { m.carry(ctx); m.part(ctx) })
}

// close ends what the mailbox does. What it knows of the absorbed tasks stands from then on.
func (m *mailbox) close() {
	m.stop()
	m.carried.Wait()
}

// look lets the carrier look for mail.
func (m *mailbox) look() {
	select {
	case m.hint <- struct{}{}:
	default:
	}
}

// carry hands out the mail, one by one.
func (m *mailbox) carry(ctx context.Context) {
	all := func(string) bool { return true }
	first := "" // given to Idle, whose caller sends it: it has to be taken up before any other is handed out
	for {
		var asked chan<- letter
		select {
		case <-ctx.Done():
			return
		case <-m.closed:
			return
		case <-m.hint:
			if first != "" && m.waits(func(id string) bool { return id == first }) {
				continue // there will be another hint when it is taken up
			}
		case asked = <-m.idle:
			if m.waits(all) { // the agent has got something to do, and will ask again
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
					asked <- letter{} // as above: this one must not overtake it
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

// waits reports whether the agent has been given such a message, by its ID, and has not taken it up.
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

// Idle gives one more message to an agent that has nothing left to do, or closes the mailbox.
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
	case l := <-answer: // the carrier answers whatever it was asked
		return l.message, l.ok
	case <-ctx.Done():
		return agent.Message{}, false
	}
}
