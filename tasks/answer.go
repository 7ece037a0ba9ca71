package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/errand-fleet/errand/store"
)

// maxAnswer bounds an answer to a question; more belongs into a message.
const maxAnswer = 4 << 10

// Answer answers a question of a running task, on behalf of by; an empty key means the only one that is open. Where options are offered,
// their number will do. The first answer stands: it comes back, whoever gave it. An *InputError says what is wrong with the answer,
// ErrNotFound that there is no such task or question, or that it is not open any more.
func (d *Desk) Answer(ctx context.Context, id, key, by, text string) (Answer, error) {
	return d.answer(ctx, id, key, Answer{Text: text, By: by, At: time.Now()})
}

func (d *Desk) answer(ctx context.Context, id, key string, given Answer) (Answer, error) {
	text := d.policy.Redactor.String(strings.TrimSpace(given.Text))
	if text == "" || utf8.RuneCountInString(text) > maxAnswer {
		return Answer{}, &InputError{Sentence: fmt.Sprintf("An answer has from 1 to %d characters.", maxAnswer)}
	}
	asked, err := d.Questions(ctx, id)
	if err != nil {
		return Answer{}, err
	}
	var q *Question
	for i := range asked {
		switch {
		case key == "" && asked[i].Answer == nil && q != nil:
			return Answer{}, &InputError{Sentence: "Several questions are open: say which one is answered."}
		case asked[i].Key == key, key == "" && asked[i].Answer == nil:
			q = &asked[i]
		}
	}
	if q == nil {
		return Answer{}, fmt.Errorf("answer task %s: no such question: %w", id, ErrNotFound)
	}
	text = q.choose(text)
	given.Text = text
	stands, err := d.store.Answer(ctx, id, q.Key, mustJSON(given), given.Message)
	if errors.Is(err, store.ErrEnded) {
		return Answer{}, fmt.Errorf("answer task %s: it has ended: %w", id, ErrNotFound)
	}
	if err != nil {
		return Answer{}, d.notFound(id, err)
	}
	var a Answer
	if err := json.Unmarshal(stands, &a); err != nil {
		return Answer{}, fmt.Errorf("read answer of task %s: %w", id, err)
	}
	d.log.Info("question answered", "run", id, "by", given.By)
	return a, nil
}

// choose reads an answer as one of the options, if it is: by its words, or by its number where no option is one.
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

// Questions reads what a task has asked people, answered or not. What another version has written is passed over.
func (d *Desk) Questions(ctx context.Context, id string) ([]Question, error) {
	stored, err := d.store.Questions(ctx, id)
	if err != nil {
		return nil, d.notFound(id, err)
	}
	var list []Question
	for _, s := range stored {
		q := Question{fence: s.Fence}
		if err := json.Unmarshal(s.Body, &q); err != nil {
			d.log.Warn("unreadable question", "run", id, "err", err)
			continue
		}
		if s.Answer != nil {
			q.Answer = &Answer{}
			if err := json.Unmarshal(s.Answer, q.Answer); err != nil {
				d.log.Warn("unreadable answer", "run", id, "err", err)
			}
		}
		list = append(list, q)
	}
	return list, nil
}

// open are the questions that the task's run waits for: not those of an earlier run that nobody has asked again.
func (d *Desk) open(ctx context.Context, rec store.Record) ([]Question, error) {
	all, err := d.Questions(ctx, rec.ID)
	return slices.DeleteFunc(all, func(q Question) bool { return q.Answer != nil || q.fence != rec.Fence }), err
}

// hear takes a message for the answer to what the running task of its thread asks, if it is from whom that task is and was written after the
// question. Otherwise it is a task like any other: ok is false. fresh is false when the same message has been heard before.
func (d *Desk) hear(ctx context.Context, running string, t Task) (ok, fresh bool, err error) {
	asked, err := d.Status(ctx, running)
	if err != nil || len(asked.Questions) != 1 || asked.Task.Source != t.Source || asked.Task.Actor != t.Actor {
		return false, false, err
	}
	q := asked.Questions[0]
	if written(t.ID).Before(q.Asked) {
		return false, false, nil
	}
	text := t.Prompt
	if len(t.Pictures) > 0 {
		text += "\n\n(Pictures came with this answer and cannot be shown with it. Ask for them in a message of their own.)"
	}
	a, err := d.answer(ctx, running, q.Key, Answer{Text: text, By: t.Actor, At: time.Now(), Message: t.ID})
	switch {
	case errors.Is(err, ErrNotFound): // answered or ended meanwhile
		return false, false, nil
	case errors.Is(err, store.ErrSpent):
		return true, false, nil
	}
	return err == nil && a.Message == t.ID, true, err
}

// written is when the message that became a task was written.
func written(id string) time.Time {
	micros, _ := strconv.ParseInt(id[:16], 10, 64) // the form of an ID
	return time.UnixMicro(micros)
}
