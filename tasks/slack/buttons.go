package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/intake"
	"github.com/errand-fleet/errand/tasks/slack/render"
)

// pressLimit bounds what a press of a button does. The person gets a message if it took longer.
const pressLimit = 10 * time.Second

// The answers to a press, besides those of intake. Only the person who pressed sees them.
const (
	tryLater = "That did not work. Please try again in a moment."
	thanks   = "Thank you for your feedback."
	voted    = "You have already voted: "
)

// buttons handles interactions with the buttons, menus and dialogs of messages.
type buttons struct {
	*client
	guard  *guard
	picker *picker
	drafts *drafts
	desk   *desk.Desk

	interpreter *interpreter // starts tasks
}

// actions are the functions that handle a press, by what was pressed. They return a sentence for the person, and an
// *tasks.InputError if nothing has changed.
func (b *buttons) actions() map[string]func(context.Context, press) (string, error) {
	return map[string]func(context.Context, press) (string, error){
		render.ActionStop:             b.stop,
		render.ActionRetry:            b.retry,
		render.ActionReady:            b.markReady,
		render.ActionGood:             b.vote,
		render.ActionBad:              b.vote,
		submitted + render.ActionBad:  b.vote,
		render.ActionPick:             b.choose,
		render.ActionAnswer:           b.answer,
		render.ActionDeny:             b.openDenyDialog,
		submitted + render.ActionDeny: b.deny,
		render.ActionAsk:              b.openAskDialog,
		submitted + render.ActionAsk:  b.ask,
	}
}

// handler returns the function that handles a press, or nil for links and unknown buttons.
func (b *buttons) handler(p press) func(ctx context.Context) {
	do, ok := b.actions()[p.action]
	if !ok {
		return nil
	}
	return func(ctx context.Context) { b.serve(ctx, p, do) }
}

// serve handles a press of a button and shows the answer, if there is one, to the person who pressed it.
func (b *buttons) serve(ctx context.Context, p press, do func(context.Context, press) (string, error)) {
	limited, cancel := context.WithTimeout(ctx, pressLimit)
	defer cancel()
	by := desk.Sender{Source: sourceName, Account: p.origin.User, Name: func(context.Context) string {
		return strings.TrimPrefix(p.name, "@")
	}}
	target, _ := p.question()
	what := strings.TrimPrefix(p.action, submitted)
	if what == render.ActionGood || what == render.ActionBad {
		what = "vote " + what
	}
	var sentence string
	err := b.desk.As(limited, by, what, target, func(ctx context.Context) (changed bool, err error) {
		sentence, err = do(ctx, p)
		return p.isAction(), err
	})
	if input, ok := errors.AsType[*tasks.InputError](err); ok {
		sentence, err = input.Sentence, nil
	}
	if err != nil {
		b.log.Warn("serve button", "action", p.action, "run", p.value, "err", err)
		sentence = tryLater
	}
	if sentence == "" {
		return
	}
	err = b.whisper(ctx, p.origin, sentence)
	if gone(err) && p.respond != "" {
		err = b.respond(ctx, p.origin.Channel, p.respond, sentence)
	}
	if err != nil && ctx.Err() == nil {
		b.log.Warn("answer button", "action", p.action, "run", p.value, "err", err)
	}
}

// statusOf returns the task that a button is about. An *tasks.InputError says that it is not known.
func statusOf(ctx context.Context, d *desk.Desk, id string) (tasks.Status, error) {
	if !tasks.ValidID(id) {
		return tasks.Status{}, inputError(intake.Forgotten)
	}
	st, err := d.Status(ctx, id)
	if errors.Is(err, tasks.ErrNotFound) || err == nil && st.Task.Source != sourceName {
		return st, inputError(intake.Forgotten)
	}
	return st, err
}

// stop stops a task. The task's messages show its end.
func (b *buttons) stop(ctx context.Context, p press) (string, error) {
	st, err := b.controlled(ctx, p, p.value)
	if err != nil {
		return "", err
	}
	if st.Ending != nil {
		return "", inputError(intake.HasEnded)
	}
	if ok, err := b.guard.mayStop(ctx, b.desk, p.origin.User, st); err != nil {
		return "", err
	} else if !ok {
		return "", notAllowed()
	}
	if st, err = b.desk.Cancel(ctx, st.Task.ID, p.name); err != nil {
		return "", err
	}
	b.log.Info("stop pressed", "run", st.Task.ID, "user", p.origin.User)
	if st.Ending != nil {
		return "", nil
	}
	return intake.Stopping, nil
}

// retry runs a task that has ended again.
func (b *buttons) retry(ctx context.Context, p press) (string, error) {
	st, err := b.admitted(ctx, p, p.value)
	if err != nil {
		return "", err
	}
	if _, err = b.desk.Retry(ctx, st.Task.ID); errors.Is(err, tasks.ErrNotEnded) {
		return "", inputError(intake.StillRunning)
	}
	if err != nil {
		return "", err
	}
	b.log.Info("retry pressed", "run", st.Task.ID, "user", p.origin.User)
	if o, err := originOf(st.Task); err == nil {
		b.react(ctx, o, eyes)
	}
	return intake.Retrying, nil
}

// choose starts a request in the repository that was chosen.
func (b *buttons) choose(ctx context.Context, p press) (string, error) {
	if err := b.mayPress(ctx, p); err != nil {
		return "", err
	}
	return b.picker.choose(ctx, p)
}

// vote records a vote on an answer. Everyone who sees the answer may vote. After a bad one, a dialog asks for the
// reason, with which the vote is recorded again.
func (b *buttons) vote(ctx context.Context, p press) (string, error) {
	st, err := statusOf(ctx, b.desk, p.value)
	if err != nil {
		return "", err
	}
	vote := strings.TrimPrefix(p.action, submitted)
	reason := untrusted.Cut(b.redact(strings.TrimSpace(p.detail)), render.MaxVoteReason)
	counts, err := b.desk.CastVote(ctx, st.Task.ID, p.origin.User,
		tasks.Vote{Person: b.interpreter.displayName(ctx, p.origin.User), Vote: vote, Reason: reason})
	if err != nil {
		return "", err
	}
	b.log.Info("feedback", "run", st.Task.ID, "thread", st.Task.Thread, "user", p.origin.User, "vote", counts)
	switch {
	case counts != vote:
		return "", inputError("%s", voted+render.VoteSign(counts))
	case p.action == render.ActionBad:
		if err := b.openDialog(ctx, p, render.VoteDialog); err != nil { // the vote counts without a reason
			b.log.Warn("ask for the reason of a vote", "run", st.Task.ID, "err", err)
		}
	}
	return thanks, nil
}

// answer answers a question with the option whose button was pressed.
func (b *buttons) answer(ctx context.Context, p press) (string, error) {
	id, q, err := b.question(ctx, p)
	if err != nil {
		return "", err
	}
	n, err := strconv.Atoi(p.detail)
	if err != nil || n < 0 || n >= len(q.Options) {
		return "", inputError(intake.NotWaiting)
	}
	return b.reply(ctx, p, id, q.Options[n])
}

// dialogMemory is what a dialog keeps of the press that opened it, which Slack does not send with the answer.
type dialogMemory struct {
	Value   string `json:"value"`
	Origin  origin `json:"origin"`
	Respond string `json:"respond,omitempty"`
}

// openDenyDialog opens the dialog for the reason why the agent may not do something.
func (b *buttons) openDenyDialog(ctx context.Context, p press) (string, error) {
	if _, _, err := b.question(ctx, p); err != nil {
		return "", err
	}
	return "", b.openDialog(ctx, p, render.DenyDialog)
}

// openDialog opens a dialog that remembers the press. Slack allows that for 3 s after the press.
func (b *buttons) openDialog(ctx context.Context, p press, dialog func(memory string) slack.ModalViewRequest) error {
	memory, err := json.Marshal(dialogMemory{Value: p.value, Origin: p.origin, Respond: p.respond})
	if err != nil {
		return fmt.Errorf("marshal dialog: %w", err)
	}
	if _, err := b.api.OpenViewContext(ctx, p.trigger, dialog(string(memory))); err != nil {
		return fmt.Errorf("open dialog: %w", err)
	}
	return nil
}

// deny refuses what the agent asked for, with the reason of a dialog.
func (b *buttons) deny(ctx context.Context, p press) (string, error) {
	id, _, err := b.question(ctx, p)
	if err != nil {
		return "", err
	}
	return b.reply(ctx, p, id, tasks.Denial(p.detail))
}

// question returns the open question that a press is about. An *tasks.InputError says why it cannot be answered.
func (b *buttons) question(ctx context.Context, p press) (id string, q tasks.Question, err error) {
	id, key := p.question()
	st, err := b.admitted(ctx, p, id)
	if err != nil {
		return id, q, err
	}
	if st.Ending != nil {
		return id, q, inputError(intake.NotWaiting)
	}
	list, err := b.desk.Questions(ctx, id)
	if err != nil {
		return id, q, err
	}
	i := slices.IndexFunc(list, func(q tasks.Question) bool { return q.Key == key })
	if i < 0 {
		return id, q, inputError(intake.NotWaiting)
	}
	if a := list[i].Answer; a != nil {
		return id, q, inputError("%s", intake.AnsweredBefore(*a))
	}
	return id, list[i], nil
}

// reply answers a question. The message with the question shows the answer once the agent has it; only a person who
// was too late gets a message.
func (b *buttons) reply(ctx context.Context, p press, id, text string) (string, error) {
	_, key := p.question()
	a, err := b.desk.Answer(ctx, id, key, p.name, text)
	switch {
	case errors.Is(err, tasks.ErrNotFound):
		return "", inputError(intake.NotWaiting)
	case err != nil:
		return "", err
	case a.By != p.name || a.Text != text:
		return "", inputError("%s", intake.AnsweredBefore(a))
	}
	b.log.Info("question answered by button", "run", id, "user", p.origin.User)
	return "", nil
}

// submitted precedes the name of a dialog that was submitted.
const submitted = "submitted "

// interaction is what a user did with a message or a dialog of the bot. Like an envelope it has only the fields that
// errand needs.
type interaction struct {
	Type string `json:"type"`
	User struct {
		ID       string `json:"id"`
		Username string `json:"username"`
		Name     string `json:"name"`
	} `json:"user"`
	Channel struct {
		ID string `json:"id"`
	} `json:"channel"`
	Container struct {
		MessageTS string `json:"message_ts"`
		ThreadTS  string `json:"thread_ts"`
	} `json:"container"`
	CallbackID string `json:"callback_id"` // of a shortcut
	MessageTS  string `json:"message_ts"`  // likewise
	Message    struct {
		ThreadTS string `json:"thread_ts"`
	} `json:"message"`
	Actions []struct {
		ActionID       string `json:"action_id"`
		BlockID        string `json:"block_id"`
		Value          string `json:"value"`
		SelectedOption struct {
			Value string `json:"value"`
		} `json:"selected_option"`
	} `json:"actions"`
	ResponseURL string `json:"response_url"`
	TriggerID   string `json:"trigger_id"`
	View        struct {
		CallbackID      string `json:"callback_id"`
		PrivateMetadata string `json:"private_metadata"`
		State           struct {
			Values map[string]map[string]struct {
				Value string `json:"value"`
			} `json:"values"`
		} `json:"state"`
	} `json:"view"`
}

// press is a press of a button, below a message or of a dialog.
type press struct {
	action, detail string // which button or shortcut it is; its number, or the typed text
	value          string // what the button is about, or what was chosen
	block          string // the name of the block it is in
	name           string // of the user, as people know them
	trigger        string // lets the app open a dialog
	respond        string // URL at which the message with the button can be replaced, or the shortcut be answered
	origin         origin // the message with the button or the chosen one, and the user
}

// press reads a press of a button; false for anything else.
func (in interaction) press() (p press, ok bool) {
	switch {
	case in.Type == "block_actions" && len(in.Actions) == 1:
		p.action, p.detail, _ = strings.Cut(in.Actions[0].ActionID, "/")
		p.value, p.block, p.respond = cmp.Or(in.Actions[0].Value, in.Actions[0].SelectedOption.Value),
			in.Actions[0].BlockID, in.ResponseURL
		p.origin = origin{
			Channel: in.Channel.ID, TS: in.Container.MessageTS,
			ThreadTS: cmp.Or(in.Message.ThreadTS, in.Container.ThreadTS),
		}
	case in.Type == "message_action":
		p.action, p.respond = in.CallbackID, in.ResponseURL
		p.origin = origin{Channel: in.Channel.ID, TS: in.MessageTS, ThreadTS: in.Message.ThreadTS}
	case in.Type == "view_submission":
		var kept dialogMemory
		if json.Unmarshal([]byte(in.View.PrivateMetadata), &kept) != nil {
			return press{}, false
		}
		p.action, p.detail = submitted+in.View.CallbackID,
			in.View.State.Values[render.ReasonField][render.ReasonField].Value
		p.value, p.origin, p.respond = kept.Value, kept.Origin, kept.Respond
	default:
		return press{}, false
	}
	p.origin.User, p.trigger = in.User.ID, in.TriggerID
	p.name = "@" + cmp.Or(in.User.Username, in.User.Name, in.User.ID)
	o := p.origin
	valid := channelForm.fits(o.Channel) && userForm.fits(o.User) && isTS(o.TS) &&
		(o.ThreadTS == "" || isTS(o.ThreadTS))
	return p, valid
}

// isAction reports whether a press changes something by itself: it does not only open a dialog, nor is it a request,
// which is a task.
func (p press) isAction() bool {
	return !slices.Contains([]string{render.ActionDeny, render.ActionAsk, submitted + render.ActionAsk}, p.action)
}

// question splits the value of a button below a question into the task and the question's key.
func (p press) question() (id, key string) {
	id, key, _ = strings.Cut(p.value, " ")
	return id, key
}
