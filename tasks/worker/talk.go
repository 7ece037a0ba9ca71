package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/format"
)

// talker is who speaks with people about a task; false where nobody does.
func talker(s tasks.Source, t tasks.Task) (tasks.Talker, bool) {
	k, ok := s.(tasks.Talker)
	if some, is := s.(tasks.Selective); is && !some.Talks(t) {
		return nil, false
	}
	return k, ok
}

// talk is how the agent of one run speaks with people.
type talk struct {
	claim    *store.Claim
	store    *store.Store
	run      context.Context // ends with the task's run; a call of a tool may end before
	task     tasks.Task
	talker   tasks.Talker
	redact   *agent.Redactor
	emit     func(agent.Event)
	lent     func() // wakes who waits for the places of the run
	patience time.Duration
	log      *slog.Logger

	one   chan struct{} // holds a token while a question is open: whoever answers in a thread cannot say which one is meant
	mu    sync.Mutex
	asked map[string]int // how often this run has asked the same
}

// talk lets the agent of a run speak with people; nil where it cannot. Content of strangers is not given a voice.
func (w *Worker) talk(r *run, t tasks.Task, s tasks.Source, emit func(agent.Event)) *talk {
	to, ok := talker(s, t)
	if !ok || t.Profile == agent.Untrusted {
		return nil
	}
	return &talk{
		claim: r.claim, store: w.store, run: r.ctx, task: t, talker: to, redact: w.cfg.Policy.Redactor, emit: emit, lent: func() { w.wakeLines(r.detached, r.claim.Record()) },
		patience: w.timing.Answer, log: w.log, one: make(chan struct{}, 1), asked: map[string]int{},
	}
}

// say posts words to the thread, once, and says what the agent is to know of that.
func (k *talk) say(ctx context.Context, text string) (string, error) {
	text = k.redact.String(text)
	first, err := k.claim.First(ctx, "say-"+format.Hash(text))
	if err != nil {
		return "", err
	}
	if !first { // of a try that failed nobody knows whether it arrived
		return "This very text was posted before.", nil
	}
	k.emit(agent.Event{Kind: tasks.Said, Text: text, Time: time.Now()})
	if err := k.talker.Say(ctx, k.task, text); err != nil {
		return "", fmt.Errorf("post to the thread: %w", err)
	}
	return "Posted.", nil
}

// ask puts a question to people and waits for the answer, which may be that nobody gave one.
func (k *talk) ask(ctx context.Context, q tasks.Question) (tasks.Answer, error) {
	content := append([]string{q.Text, ""}, q.Options...)
	select {
	case k.one <- struct{}{}:
		defer func() { <-k.one }()
	case <-ctx.Done():
		return tasks.Answer{}, context.Cause(ctx)
	}
	if q.Consent != "" {
		if a, ok, err := k.consented(ctx, q.Consent); ok || err != nil {
			return a, err
		}
	}
	q.Text, q.Options = k.redact.String(q.Text), slices.Clone(q.Options)
	for i, o := range q.Options {
		q.Options[i] = k.redact.String(o)
	}
	for {
		q.Key = k.next(content)
		q.Asked = time.Now()
		q.Until = q.Asked.Add(k.patience)
		a, known, err := k.put(ctx, q)
		if err != nil || !known {
			return a, err
		}
		if !a.Expired { // else an earlier run of the task had asked in vain; now somebody may be there
			return a, nil
		}
	}
}

// next names a question by its content and by how often this run has asked it before, so that a run that is repeated finds its answers, and a
// consent is not one to all that follows.
func (k *talk) next(content []string) string {
	sum := format.Hash(content...)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked[sum]++
	return fmt.Sprintf("%s-%d", sum, k.asked[sum])
}

// put asks one question. known means that the answer had been given to an earlier run of the task.
func (k *talk) put(ctx context.Context, q tasks.Question) (a tasks.Answer, known bool, err error) {
	body := format.JSON(q)
	answer, err := k.claim.Ask(ctx, q.Key, body)
	if known = answer != nil; err == nil && !known {
		k.emit(agent.Event{Kind: tasks.Asked, Text: q.Text, Input: body, Time: q.Asked})
		answer, err = k.wait(ctx, q)
	}
	if err == nil {
		err = json.Unmarshal(answer, &a)
	}
	if err != nil {
		return a, known, fmt.Errorf("ask people: %w", err)
	}
	k.emit(agent.Event{Kind: tasks.Replied, Text: a.Text, Tool: a.By, Error: a.Expired, Time: time.Now()})
	k.settle(ctx, q, a)
	return a, known, nil
}

// settleLimit bounds how long the agent is kept from its answer for people to see that it is there.
const settleLimit = 10 * time.Second

func (k *talk) settle(ctx context.Context, q tasks.Question, a tasks.Answer) {
	settler, ok := k.talker.(tasks.Settler)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, settleLimit)
	defer cancel()
	q.Answer = &a
	if err := settler.Settle(ctx, k.task, q); err != nil {
		k.log.Warn("show answer", "run", k.task.ID, "thread", k.task.Thread, "err", err)
	}
}

// wait shows a question and waits for its answer as long as there is patience. A question that nobody waits for any more is answered by that,
// so that no message is taken for its answer; only one of a run that is to go on elsewhere stays open.
func (k *talk) wait(ctx context.Context, q tasks.Question) (json.RawMessage, error) {
	waiting, cancel := context.WithTimeoutCause(ctx, k.patience, errUnanswered)
	defer cancel()
	answer, err := json.RawMessage(nil), k.show(ctx, q)
	if err == nil {
		takeBack := k.lend()
		answer, err = k.claim.Await(waiting, q.Key)
		takeBack()
	}
	if err == nil || k.run.Err() != nil {
		return answer, err
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
	defer cancel()
	stands, cerr := k.store.Questions.Answer(closing, k.task.ID, q.Key, format.JSON(tasks.Answer{At: time.Now(), Expired: true}), "")
	if errors.Is(err, errUnanswered) {
		return stands, cerr
	}
	return nil, err
}

// lend gives the run's places under the fleet's limits to others while it waits for a person. Whoever has answered is not made to wait for
// one: the run takes them back at once, and a limit is then exceeded by the runs that go on so.
func (k *talk) lend() (takeBack func()) {
	ctx := context.WithoutCancel(k.run)
	step := func(do func(context.Context) error) (done bool) {
		ctx, cancel := context.WithTimeout(ctx, closeLimit)
		defer cancel()
		err := do(ctx)
		if done = err == nil || errors.Is(err, store.ErrStale); !done {
			k.log.Warn("lend places", "run", k.task.ID, "err", err)
		}
		return done
	}
	step(k.claim.Lend) // it may have worked also where it seems to have failed
	k.lent()
	return func() {
		for !step(k.claim.TakeBack) { // the run would count nowhere to its end; without Redis it does not last long either
			select {
			case <-time.After(takeBackPause):
			case <-k.run.Done():
				return
			}
		}
	}
}

// takeBackPause is how long to wait before places are taken back again after that has failed.
const takeBackPause = 500 * time.Millisecond

// closeLimit bounds how long it is tried to close a question.
const closeLimit = 5 * time.Second

// errUnanswered ends the wait for an answer.
var errUnanswered = errors.New("nobody answered in time")

// show lets the source show the question, unless an earlier run of the task did.
func (k *talk) show(ctx context.Context, q tasks.Question) error {
	first, err := k.claim.First(ctx, "ask-"+q.Key)
	if err != nil || !first {
		return err
	}
	if err := k.talker.Ask(ctx, k.task, q); err != nil {
		k.log.Warn("show question", "run", k.task.ID, "thread", k.task.Thread, "err", err)
		return fmt.Errorf("post the question: %w", err)
	}
	return nil
}
