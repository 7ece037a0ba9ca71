package tasks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
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

// Question is something the agent wants to know from a person.
type Question struct {
	Key     string    `json:"key"` // the same question of the same task has the same key
	Text    string    `json:"text"`
	Options []string  `json:"options,omitempty"` // offered answers; other words will do as well
	Until   time.Time `json:"until"`             // then the agent goes on without
	Answer  *Answer   `json:"answer,omitempty"`
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
	task     Task
	talker   Talker
	redact   *agent.Redactor
	emit     func(agent.Event)
	patience time.Duration
	log      *slog.Logger
}

// talk lets the agent of a run speak with people; nil where it cannot. Content of strangers is not given a voice.
func (w *Worker) talk(r *run, t Task, s Source, emit func(agent.Event)) *talk {
	talker, ok := s.(Talker)
	if !ok || t.Profile == agent.Untrusted {
		return nil
	}
	return &talk{
		claim: r.claim, store: w.store, task: t, talker: talker, redact: w.cfg.Policy.Redactor, emit: emit,
		patience: w.timing.Answer, log: w.log,
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

// errUnanswered ends the wait for an answer.
var errUnanswered = errors.New("nobody answered in time")

// ask puts a question to people and waits for the answer, which may be that nobody gave one. about tells it from others in the same words.
func (k *talk) ask(ctx context.Context, text string, options []string, about string) (Answer, error) {
	q := Question{Key: key(append([]string{text, about}, options...)...), Text: k.redact.String(text), Until: time.Now().Add(k.patience)}
	for _, o := range options {
		q.Options = append(q.Options, k.redact.String(o))
	}
	body := mustJSON(q)
	answer, err := k.claim.Ask(ctx, q.Key, body)
	if err != nil {
		return Answer{}, err
	}
	if answer == nil {
		k.emit(agent.Event{Kind: Asked, Text: q.Text, Input: body, Time: time.Now()})
		k.show(ctx, q)
		if answer, err = k.await(ctx, q); err != nil {
			return Answer{}, err
		}
	}
	var a Answer
	if err := json.Unmarshal(answer, &a); err != nil {
		return Answer{}, fmt.Errorf("read answer: %w", err)
	}
	k.emit(agent.Event{Kind: Replied, Text: a.Text, Tool: a.By, Error: a.Expired, Time: time.Now()})
	return a, nil
}

// show lets the source show the question, unless an earlier run of the task did. Whoever cannot see it there can answer in the console.
func (k *talk) show(ctx context.Context, q Question) {
	first, err := k.claim.First(ctx, "ask-"+q.Key)
	if err == nil && first {
		err = k.talker.Ask(ctx, k.task, q)
	}
	if err != nil {
		k.log.Warn("show question", "run", k.task.ID, "thread", k.task.Thread, "err", err)
	}
}

// await waits for the answer as long as there is patience. Then the question is answered by that, so that nobody answers it afterwards.
func (k *talk) await(ctx context.Context, q Question) (json.RawMessage, error) {
	wait, cancel := context.WithTimeoutCause(ctx, k.patience, errUnanswered)
	defer cancel()
	answer, err := k.claim.Await(wait, q.Key)
	if errors.Is(err, errUnanswered) {
		answer, err = k.store.Answer(ctx, k.task.ID, q.Key, mustJSON(Answer{At: time.Now(), Expired: true}), "")
	}
	return answer, err
}

// permit asks people whether the agent may do something.
func (k *talk) permit(ctx context.Context, r agent.ToolRequest) agent.Decision {
	const yes, no = "Allow", "Deny"
	text := "May I do this? " + r.Text
	if r.Reason != "" {
		text += " (" + r.Reason + ")"
	}
	// The same words may stand for another call, of which nobody was asked.
	a, err := k.ask(ctx, text, []string{yes, no}, string(r.Input))
	switch {
	case err != nil:
		return agent.Decision{Reason: "Nobody could be asked for approval: " + err.Error()}
	case a.Expired:
		return agent.Decision{Reason: "Nobody approved of this in time. Go on without it, and say in your answer what is left to do."}
	case a.Text == yes:
		return agent.Decision{Allow: true}
	case a.Text == no:
		return agent.Decision{Reason: a.By + " does not approve of this."}
	default:
		return agent.Decision{Reason: a.By + " does not approve of this: " + a.Text}
	}
}
