package tasks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
)

// Talker is a Source in whose threads the agent can speak while it works. Its methods are called on workers, from any goroutine.
type Talker interface {
	// Say posts what the agent has to tell on its way. It is called at most once for the same words of a task.
	Say(ctx context.Context, t Task, text string) error
	// Ask shows a question to whoever is to answer it: by a message in the thread, which Desk.Submit takes for the answer while the question
	// is open, or by Desk.Answer, as in the console. It is called at most once for the same question of a task.
	Ask(ctx context.Context, t Task, q Question) error
}

// Selective is a Talker that speaks of some tasks alone.
type Selective interface {
	// Talks reports whether the agent can speak with people about a task.
	Talks(t Task) bool
	// Assures reports whether people are told in words that a live run takes their task into account.
	Assures(t Task) bool
}

// talker is who speaks with people about a task; false where nobody does.
func talker(s Source, t Task) (Talker, bool) {
	k, ok := s.(Talker)
	if some, is := s.(Selective); is && !some.Talks(t) {
		return nil, false
	}
	return k, ok
}

// Settler is a Talker that can show in the question's place what became of it.
type Settler interface {
	// Settle shows q.Answer. It may be called again for the same question.
	Settle(ctx context.Context, t Task, q Question) error
}

// Question is something the agent wants to know from a person.
type Question struct {
	Key     string    `json:"key"` // the same question of the same task has the same key
	Text    string    `json:"text"`
	Options []string  `json:"options,omitempty"` // offered answers; other words will do as well
	Asked   time.Time `json:"asked"`
	Until   time.Time `json:"until"`             // then the agent goes on without
	Consent string    `json:"consent,omitempty"` // it is whether the agent may do something: what a consent for the whole task would be to
	Answer  *Answer   `json:"answer,omitempty"`

	fence int64 // of the run that asked
}

// Answer is what became of a question.
type Answer struct {
	Text    string    `json:"text,omitempty"`
	By      string    `json:"by,omitempty"`
	At      time.Time `json:"at"`
	Expired bool      `json:"expired,omitempty"` // nobody had answered in time
	Message string    `json:"message,omitempty"` // the ID that the answer would have had as a task
}

// What is told of questions among a run's events.
const (
	Said    agent.Kind = "said"    // Text is what the agent told people on its way
	Asked   agent.Kind = "asked"   // Input is the Question
	Replied agent.Kind = "replied" // Text is the answer, Tool who gave it; Error says that nobody did
)

// talk is how the agent of one run speaks with people.
type talk struct {
	claim    *store.Claim
	store    *store.Store
	run      context.Context // ends with the task's run; a call of a tool may end before
	task     Task
	talker   Talker
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
func (w *Worker) talk(r *run, t Task, s Source, emit func(agent.Event)) *talk {
	to, ok := talker(s, t)
	if !ok || t.Profile == agent.Untrusted {
		return nil
	}
	return &talk{
		claim: r.claim, store: w.store, run: r.ctx, task: t, talker: to, redact: w.cfg.Policy.Redactor, emit: emit, lent: func() { w.wakeLines(r.detached, r.claim.Record()) },
		patience: w.timing.Answer, log: w.log, one: make(chan struct{}, 1), asked: map[string]int{},
	}
}

// key names what is said or asked by its content, so that a run that is repeated says it once and finds its answer.
func key(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// say posts words to the thread, once, and says what the agent is to know of that.
func (k *talk) say(ctx context.Context, text string) (string, error) {
	text = k.redact.String(text)
	first, err := k.claim.First(ctx, "say-"+key(text))
	if err != nil {
		return "", err
	}
	if !first { // of a try that failed nobody knows whether it arrived
		return "This very text was posted before.", nil
	}
	k.emit(agent.Event{Kind: Said, Text: text, Time: time.Now()})
	if err := k.talker.Say(ctx, k.task, text); err != nil {
		return "", fmt.Errorf("post to the thread: %w", err)
	}
	return "Posted.", nil
}

// ask puts a question to people and waits for the answer, which may be that nobody gave one.
func (k *talk) ask(ctx context.Context, q Question) (Answer, error) {
	content := append([]string{q.Text, ""}, q.Options...)
	select {
	case k.one <- struct{}{}:
		defer func() { <-k.one }()
	case <-ctx.Done():
		return Answer{}, context.Cause(ctx)
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
	sum := key(content...)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked[sum]++
	return fmt.Sprintf("%s-%d", sum, k.asked[sum])
}

// put asks one question. known means that the answer had been given to an earlier run of the task.
func (k *talk) put(ctx context.Context, q Question) (a Answer, known bool, err error) {
	body := mustJSON(q)
	answer, err := k.claim.Ask(ctx, q.Key, body)
	if known = answer != nil; err == nil && !known {
		k.emit(agent.Event{Kind: Asked, Text: q.Text, Input: body, Time: q.Asked})
		answer, err = k.wait(ctx, q)
	}
	if err == nil {
		err = json.Unmarshal(answer, &a)
	}
	if err != nil {
		return a, known, fmt.Errorf("ask people: %w", err)
	}
	k.emit(agent.Event{Kind: Replied, Text: a.Text, Tool: a.By, Error: a.Expired, Time: time.Now()})
	k.settle(ctx, q, a)
	return a, known, nil
}

// settleLimit bounds how long the agent is kept from its answer for people to see that it is there.
const settleLimit = 10 * time.Second

func (k *talk) settle(ctx context.Context, q Question, a Answer) {
	settler, ok := k.talker.(Settler)
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
func (k *talk) wait(ctx context.Context, q Question) (json.RawMessage, error) {
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
	stands, cerr := k.store.Questions.Answer(closing, k.task.ID, q.Key, mustJSON(Answer{At: time.Now(), Expired: true}), "")
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
func (k *talk) show(ctx context.Context, q Question) error {
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
