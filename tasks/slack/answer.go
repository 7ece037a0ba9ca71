package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/slack-go/slack"

	"github.com/errand-fleet/errand/tasks"
)

// answerButtons offer the options of a question. Other words go into the thread; why something is refused, into a dialog.
func answerButtons(t tasks.Task, q tasks.Question) []button {
	var list []button
	for i, option := range q.Options {
		b := button{text: line(option, maxButton), action: answerWith + "/" + strconv.Itoa(i), value: t.ID + " " + q.Key}
		switch {
		case b.text == "":
			b.text = fmt.Sprintf("Answer %d", i+1)
		case q.Consent != "" && option == tasks.Approve:
			b.style = slack.StylePrimary
		case q.Consent != "" && option == tasks.Deny:
			b.action, b.style = deny, slack.StyleDanger
		}
		list = append(list, b)
	}
	return list
}

// answer gives a question the option whose button was pressed.
func (s *Source) answer(ctx context.Context, d *tasks.Desk, p press) {
	s.attend(ctx, p, func(ctx context.Context) (string, error) {
		id, q, err := s.asking(ctx, d, p)
		if err != nil {
			return "", err
		}
		n, err := strconv.Atoi(p.detail)
		if err != nil || n < 0 || n >= len(q.Options) {
			return "", refusal(overtaken)
		}
		return s.reply(ctx, d, p, id, q, q.Options[n])
	})
}

// askWhy opens the dialog in which somebody says why the agent may not do something. It has to be quick: Slack lets us do that for 3 s.
func (s *Source) askWhy(ctx context.Context, d *tasks.Desk, p press) {
	s.attend(ctx, p, func(ctx context.Context) (string, error) {
		if _, _, err := s.asking(ctx, d, p); err != nil {
			return "", err
		}
		view, err := denial(p)
		if err != nil {
			return "", err
		}
		if _, err := s.api.OpenViewContext(ctx, p.trigger, view); err != nil {
			return "", fmt.Errorf("open dialog: %w", err)
		}
		return "", nil
	})
}

// deny refuses what a dialog is about.
func (s *Source) deny(ctx context.Context, d *tasks.Desk, p press) {
	s.attend(ctx, p, func(ctx context.Context) (string, error) {
		id, q, err := s.asking(ctx, d, p)
		if err != nil {
			return "", err
		}
		return s.reply(ctx, d, p, id, q, tasks.Denial(p.detail))
	})
}

// asking is the question that a press is about, as long as it is open. A refusal says why it cannot be answered.
func (s *Source) asking(ctx context.Context, d *tasks.Desk, p press) (id string, q tasks.Question, err error) {
	id, key, _ := strings.Cut(p.value, " ")
	st, err := s.pressed(ctx, d, p, id)
	if err != nil {
		return id, q, err
	}
	if st.Ending != nil {
		return id, q, refusal(overtaken)
	}
	list, err := d.Questions(ctx, id)
	if err != nil {
		return id, q, err
	}
	i := slices.IndexFunc(list, func(q tasks.Question) bool { return q.Key == key })
	if i < 0 {
		return id, q, refusal(overtaken)
	}
	if a := list[i].Answer; a != nil {
		return id, q, refusal(stands(*a))
	}
	return id, list[i], nil
}

// overtaken is said when nobody waits for an answer any more.
const overtaken = "Nobody waits for this answer any more."

// stands says which answer was first.
func stands(a tasks.Answer) string {
	if a.Expired {
		return overtaken
	}
	return fmt.Sprintf("%s has answered this already: %s", a.By, line(a.Text, maxSentence))
}

// reply answers a question. The message that asks it shows so as soon as the agent has heard; only who was too late is told.
func (s *Source) reply(ctx context.Context, d *tasks.Desk, p press, id string, q tasks.Question, text string) (string, error) {
	a, err := d.Answer(ctx, id, q.Key, p.name, text)
	switch {
	case errors.Is(err, tasks.ErrNotFound):
		return overtaken, nil
	case err != nil:
		return "", err
	case a.By != p.name || a.Text != text:
		return stands(a), nil
	}
	s.log.Info("question answered by button", "run", id, "user", p.origin.User)
	return "", nil
}

// maxReason is the characters of a reason. With what is around it, it stays within an answer.
const maxReason = 1000

// memory is what a dialog remembers of the press that opened it: Slack does not tell it with the answer.
type memory struct {
	Value  string `json:"value"`
	Origin origin `json:"origin"`
}

// denial is the dialog for a reason.
func denial(p press) (slack.ModalViewRequest, error) {
	kept, err := json.Marshal(memory{Value: p.value, Origin: p.origin})
	if err != nil {
		return slack.ModalViewRequest{}, fmt.Errorf("marshal dialog: %w", err)
	}
	plain := func(text string) *slack.TextBlockObject {
		return slack.NewTextBlockObject(slack.PlainTextType, text, false, false)
	}
	reason := slack.NewPlainTextInputBlockElement(plain("What it should do instead, perhaps"), denyReason)
	reason.Multiline, reason.MaxLength = true, maxReason
	input := slack.NewInputBlock(denyReason, plain("Reason, for the agent"), nil, reason)
	input.Optional = true
	return slack.ModalViewRequest{
		Type: slack.VTModal, CallbackID: deny, PrivateMetadata: string(kept), Title: plain("Deny"), Submit: plain("Deny"), Close: plain("Back"),
		Blocks: slack.Blocks{BlockSet: []slack.Block{input}},
	}, nil
}
