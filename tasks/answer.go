package tasks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/internal/format"
	"github.com/errand-fleet/errand/tasks/policy"
)

// maxAnswer bounds an answer to a question, in characters. A longer text should be a message.
const maxAnswer = 4 << 10

// Answer answers a question of a running task on behalf of by. An empty key means the only open question. If the
// question offers options, text can be the number of one. The first answer wins, and Answer returns it, regardless
// of who gave it. A *RoleError says that the visitor of the context may not answer. An *InputError says why the answer
// is invalid; ErrNotFound means that the task or question does not exist or is not open.
func (d *Desk) Answer(ctx context.Context, id, key, by, text string) (Answer, error) {
	return d.answer(ctx, id, key, Answer{Text: text, By: by, At: time.Now()})
}

func (d *Desk) answer(ctx context.Context, id, key string, given Answer) (Answer, error) {
	text := d.policy.Redactor.String(strings.TrimSpace(given.Text))
	if text == "" || utf8.RuneCountInString(text) > maxAnswer {
		return Answer{}, &InputError{Sentence: fmt.Sprintf("An answer has from 1 to %d characters.", maxAnswer)}
	}
	if err := d.may(ctx, id, policy.Use); err != nil {
		return Answer{}, err
	}
	asked, err := d.Questions(ctx, id)
	if err != nil {
		return Answer{}, err
	}
	var q *Question
	for i := range asked {
		switch {
		case key == "" && asked[i].Answer == nil && q != nil:
			return Answer{}, &InputError{Sentence: "Several questions are open. Say which one you are answering."}
		case asked[i].Key == key, key == "" && asked[i].Answer == nil:
			q = &asked[i]
		}
	}
	if q == nil {
		return Answer{}, fmt.Errorf("answer task %s: no such question: %w", id, ErrNotFound)
	}
	if err := d.may(ctx, id, q.Answering()); err != nil {
		return Answer{}, err
	}
	if err := d.policy.permitAnswer(ctx, d.store, id, *q); err != nil {
		return Answer{}, err
	}
	text = q.choose(text)
	given.Text = text
	first, err := d.store.Questions.Answer(ctx, id, q.Key, format.JSON(given), given.Message)
	if errors.Is(err, store.ErrEnded) {
		return Answer{}, fmt.Errorf("answer task %s: it has ended: %w", id, ErrNotFound)
	}
	if err != nil {
		return Answer{}, d.notFound(id, err)
	}
	var a Answer
	if err := json.Unmarshal(first, &a); err != nil {
		return Answer{}, fmt.Errorf("read answer of task %s: %w", id, err)
	}
	d.log.Info("question answered", "run", id, "by", given.By)
	if a.By == given.By && a.At.Equal(given.At) {
		d.audit(ctx, q.action(a.Text), id, nil)
	}
	return a, nil
}

// Answering returns what answering the question is for the policy. Sources check the people who answer there.
func (q Question) Answering() policy.Action {
	if q.Consent != "" {
		return policy.Approve
	}
	return policy.Use
}

// action returns what an answer to the question does, for the audit log.
func (q Question) action(answer string) string {
	switch {
	case q.Consent == "":
	case answer == Approve || answer == Always:
		return "approve"
	case strings.HasPrefix(answer, Deny):
		return "deny"
	}
	return "answer"
}

// choose returns the option that an answer names by its text, or by its number if no option has that text. It returns
// any other answer unchanged.
func (q Question) choose(text string) string {
	for _, o := range q.Options {
		if strings.EqualFold(o, text) {
			return o
		}
	}
	if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(q.Options) {
		return q.Options[n-1]
	}
	return text
}

// Questions returns the questions of a task, answered or not. It skips questions that another version wrote and that
// it cannot decode.
func (d *Desk) Questions(ctx context.Context, id string) ([]Question, error) {
	stored, err := d.store.Questions.List(ctx, id)
	if err != nil {
		return nil, d.notFound(id, err)
	}
	return readQuestions(d.log, id, stored), nil
}

func readQuestions(log *slog.Logger, id string, stored []store.Question) (list []Question) {
	for _, s := range stored {
		q := Question{fence: s.Fence}
		if err := json.Unmarshal(s.Body, &q); err != nil {
			log.Warn("unreadable question", "run", id, "err", err)
			continue
		}
		if s.Answer != nil {
			q.Answer = &Answer{}
			if err := json.Unmarshal(s.Answer, q.Answer); err != nil {
				log.Warn("unreadable answer", "run", id, "err", err)
			}
		}
		list = append(list, q)
	}
	return list
}

// askOpen sets the questions that the running tasks among the records wait for. It leaves out those of an earlier run
// that the present run has not asked again.
func (d *Desk) askOpen(ctx context.Context, records []store.Record, list []Status) error {
	var ids []string
	var at []int
	for i, rec := range records {
		if rec.State == store.Running && list[i].flaw == "" {
			ids, at = append(ids, rec.ID), append(at, i)
		}
	}
	stored, err := d.store.Questions.ListAll(ctx, ids)
	for n, questions := range stored {
		rec := records[at[n]]
		list[at[n]].Questions = slices.DeleteFunc(readQuestions(d.log, rec.ID, questions), func(q Question) bool {
			return q.Answer != nil || q.fence != rec.Fence
		})
	}
	return err
}

// Reply makes a submitted message a possible answer to the question that the running task of its thread waits for.
// With the zero value, only the person who asked for that task can answer, and the answer is the message's prompt.
type Reply struct {
	// Text returns the message's answer to q, or the error that Submit returns. If it is nil, the rule of the zero
	// value applies.
	Text func(ctx context.Context, q Question) (string, error)
	// Precision is the precision of the time in the message's ID. A message that is older than the question is not an
	// answer to it.
	Precision time.Duration
	// Only means that the message never becomes a task: Submit returns ErrNoQuestion if it is not an answer. In this
	// case t only needs ID, Source, Thread, Class and Actor.
	Only bool
}

// reply answers the open question of a running task with a message. The receipt is Answered if the message is the
// answer; it is New unless the message was used as an answer before.
func (d *Desk) reply(ctx context.Context, running string, t Task) (Receipt, error) {
	asked, err := d.Status(ctx, running)
	if err != nil || len(asked.Questions) != 1 || asked.Task.Source != t.Source {
		return Receipt{}, err
	}
	q := asked.Questions[0]
	if Born(t.ID).Add(t.Reply.Precision).Before(q.Asked) {
		return Receipt{}, nil
	}
	var text string
	switch {
	case t.Reply.Text != nil:
		if text, err = t.Reply.Text(ctx, q); err != nil {
			return Receipt{}, err
		}
	case asked.Task.Actor != t.Actor:
		return Receipt{}, nil
	default:
		text = t.Prompt
	}
	if len(t.Pictures) > 0 {
		text += "\n\n(Pictures came with this answer and cannot be shown with it. Ask for them in a separate message.)"
	}
	a, err := d.answer(ctx, running, q.Key, Answer{
		Text: text, By: t.Actor, Name: d.policy.People.NameOf(t), At: time.Now(), Message: t.ID,
	})
	receipt := Receipt{ID: running, Answered: true}
	switch {
	case errors.Is(err, ErrNotFound): // answered or ended in the meantime
		return Receipt{}, nil
	case errors.Is(err, store.ErrSpent):
		return receipt, nil
	case err != nil:
		return Receipt{}, err
	}
	receipt.New, receipt.Answered = true, a.Message == t.ID
	return receipt, nil
}

// The answers that are offered to a request for approval. Others are understood as well: see permit.
const (
	Approve = "Approve"
	Always  = "Always for this task"
	Deny    = "Deny"
)

// Denial returns the answer that denies a call for a reason.
func Denial(reason string) string {
	if reason = strings.TrimSpace(reason); reason == "" {
		return Deny
	}
	return Deny + ": " + reason
}

// Question is a question of the agent to a person.
type Question struct {
	Key     string    `json:"key"` // the same for the same question of the same task
	Text    string    `json:"text"`
	Options []string  `json:"options,omitempty"` // offered answers; other text is accepted, too
	Asked   time.Time `json:"asked"`
	Until   time.Time `json:"until"`             // when the agent continues without an answer
	Consent string    `json:"consent,omitempty"` // in a request for approval: what "Always for this task" approves
	Answer  *Answer   `json:"answer,omitempty"`

	Profile agent.Profile `json:"profile,omitempty"` // of the run that asks; who answers needs the rights for it
	// Unsandboxed means that this run can execute commands without a sandbox; see Policy.Permit.
	Unsandboxed bool `json:"unsandboxed,omitempty"`

	fence int64 // fence of the run that asked
}

// Answer is the answer to a question, or the fact that it expired.
type Answer struct {
	Text    string    `json:"text,omitempty"`
	By      string    `json:"by,omitempty"`
	Name    string    `json:"name,omitempty"` // of By, if that is an account
	At      time.Time `json:"at"`
	Expired bool      `json:"expired,omitempty"` // there was no answer in time
	Message string    `json:"message,omitempty"` // the ID that the answering message would have had as a task
}

// Who returns the name of the person who answered.
func (a Answer) Who() string { return cmp.Or(a.Name, a.By) }

// The kinds of events about messages, questions and answers of a run.
const (
	Said    agent.Kind = "said"    // Text is an intermediate message of the agent
	Asked   agent.Kind = "asked"   // Input is the Question
	Replied agent.Kind = "replied" // Text is the answer, Tool who gave it; Error means that there was no answer
)
