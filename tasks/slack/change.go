package slack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/internal/words"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
)

// The answers to a change of a request. If the agent is working on it already, the thread shows the change.
const (
	replaced   = "I am using your edited request."
	newRequest = "I am treating this as a new request."
)

// onChange follows a request that its author edits or deletes.
func (in *interpreter) onChange(ctx context.Context, env envelope) error {
	ok, err := env.isChange()
	c := env.Event
	if !ok || !in.guard.access.admits(c.edited()) {
		return err
	}
	id := origin{Channel: c.Channel, TS: c.changedTS()}.taskID()
	st, err := in.desk.Status(ctx, id)
	known := !errors.Is(err, tasks.ErrNotFound)
	switch {
	case known && err != nil:
		return err
	case known && st.Task.Actor != c.author():
		return nil
	case c.isDeletion() && known:
		return in.as(ctx, c.author(), "withdraw", id, func(ctx context.Context) error {
			_, err := in.desk.Withdraw(ctx, id)
			return err
		})
	case c.isDeletion():
		return cmp.Or(in.picker.remove(ctx, id), in.comeAgain(c))
	case !known:
		return in.onEditedMessage(ctx, c)
	}
	reply, err := in.reword(ctx, c.edited(), st.Task)
	if input, ok := errors.AsType[*tasks.InputError](err); ok {
		reply, err = input.Sentence, nil
	}
	if _, ok := errors.AsType[forbidden](err); ok {
		return nil
	}
	if reply != "" {
		in.notify(ctx, c.edited().origin(), reply)
	}
	return err
}

// onEditedMessage deals with an edit of a message that is no task. If the message waits for its repository, the new
// words replace the old ones. Otherwise they are a request only if they add a mention.
func (in *interpreter) onEditedMessage(ctx context.Context, change event) error {
	ev := change.edited()
	me, err := in.me.get(ctx)
	if err != nil {
		return err
	}
	_, waits, err := in.picker.load(ctx, ev.origin().taskID())
	if err != nil || !waits && !ev.addsMention(words.Slack(ev.Text, me.user), me) {
		return cmp.Or(err, in.comeAgain(change))
	}
	ev.Type = appMention // Slack sends none for an edit
	return in.onMessage(ctx, ev)
}

// reword gives a task the words of its edited message, and returns the answer. If the task has ended, the new words are
// a request only if they add a mention.
func (in *interpreter) reword(ctx context.Context, ev event, was tasks.Task) (reply string, err error) {
	me, err := in.me.get(ctx)
	if err != nil {
		return "", err
	}
	said := words.Slack(ev.Text, me.user)
	m := ev.message(said)
	if _, ok := readWord(m.text); ok || m.text == "" {
		return "", nil
	}
	if err := in.guard.check(ctx, me, ev); err != nil {
		return "", err
	}
	if err := in.guard.pace(ctx, ev, m.origin, false); err != nil {
		return "", err
	}
	t, err := in.edited(ctx, m, was)
	if err != nil {
		return "", err
	}
	return in.amend(ctx, t, ev.addsMention(said, me), ev.Edited.TS)
}

// edited returns the task of an edited message. If it leaves a choice of repositories, it stays in that of the task
// before.
func (in *interpreter) edited(ctx context.Context, m message, was tasks.Task) (tasks.Task, error) {
	thread, err := in.threadOf(ctx, m.origin)
	if err != nil {
		return tasks.Task{}, err
	}
	t, err := in.request(ctx, m, thread)
	if _, open := errors.AsType[*errUndecided](err); open {
		if t.Repo, t.Also, err = was.Repo, was.Also, nil; t.Repo == "" {
			t.Ref = ""
		}
	}
	return t, err
}

// amend gives the desk the new words of a task and returns the answer. A task that has ended becomes a new one if again
// is set.
func (in *interpreter) amend(ctx context.Context, t tasks.Task, again bool, edit string) (reply string, err error) {
	var done desk.Amendment
	err = in.as(ctx, t.Actor, "edit", t.ID, func(ctx context.Context) (err error) {
		done, err = in.desk.Amend(ctx, t, desk.Edit{Key: edit})
		return err
	})
	switch {
	case err != nil:
		return "", err
	case done == desk.Replaced:
		return replaced, nil
	case done == desk.TooLate && again:
		t.ID = tasks.Edited(t.ID, edit)
		if _, err = in.desk.Submit(ctx, t); err != nil {
			return "", err
		}
		return newRequest, nil
	}
	return "", nil
}

// optionNames are the options that a message may begin with.
const optionNames = "repo, branch, directory, model, effort, budget, timeout and plan"

// cutOptions cuts the options off a message that begins with them: [repo=o/r model=opus plan]. A bracket without
// options is text, such as [WIP]. Names of models may contain brackets.
func cutOptions(text string) (options []string, rest string) {
	line, _, _ := strings.Cut(text, "\n")
	for end, depth := 0, 0; end < len(line) && line[0] == '['; end++ {
		switch line[end] {
		case '[':
			depth++
		case ']':
			depth--
		}
		if depth > 0 {
			continue
		}
		options = strings.Fields(strings.ReplaceAll(text[1:end], ",", " "))
		if strings.Contains(text[1:end], "=") || slices.Equal(options, []string{"plan"}) {
			return options, strings.TrimSpace(text[end+1:])
		}
		return nil, text
	}
	return nil, text
}

// set reads one option into a request.
func (r *request) set(option string) error {
	key, value, _ := strings.Cut(option, "=")
	if r.repo != "" && !strings.Contains(option, "=") && !strings.EqualFold(option, "plan") { // [repo=api, web]
		key, value = "repo", option
	}
	key = strings.ToLower(key)
	if (value == "") != (key == "plan") {
		return inputError("I do not understand the option %q. The options are %s.", option, optionNames)
	}
	var err error
	switch key {
	case "repo":
		if r.repo != "" {
			value = r.repo + "," + value
		}
		r.repo = value // findPlace splits it
	case "branch":
		r.ref, err = tasks.ParseBranch(value)
	case "directory":
		r.options.Directory = value
	case "model":
		r.options.Model = value
	case "effort":
		r.options.Effort = value
	case "budget":
		r.options.MaxUSD, err = tasks.ParseBudget(value)
	case "timeout":
		r.options.Limit, err = tasks.ParseTimeout(value)
	case "plan":
		r.options.Plan = true
	default:
		err = inputError("There is no option %q. The options are %s.", key, optionNames)
	}
	return err
}

// inputError returns an error for a mistake in the request, with a sentence for its author.
func inputError(format string, args ...any) error {
	return &tasks.InputError{Sentence: fmt.Sprintf(format, args...)}
}
