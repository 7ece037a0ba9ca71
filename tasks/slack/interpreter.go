package slack

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/slack-go/slack"

	"github.com/errand-fleet/errand/internal/words"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/intake"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/tasks/slack/app"
	"github.com/errand-fleet/errand/tasks/slack/render"
)

// interpreter turns events into tasks, commands and changes of tasks.
type interpreter struct {
	*client
	guard   *guard
	repos   *repositories
	picker  *picker
	digest  *digest // knows what the threads of notices are about
	reports *reporter
	names   people.People
	drafts  *drafts
	desk    *desk.Desk
	linkURL string // where people link their account to one on the forge; empty: they cannot
}

// help describes how to ask. The options are those of cutOptions.
const help = "Mention me and say what you want done. I answer in the thread, and you can continue there. You can " +
	"begin with options: [repo=owner/name branch=… directory=… model=… effort=… budget=… timeout=… plan]. In the " +
	"thread, say stop, status, retry or mark as ready, or react to a request with ❌ to stop it. While a request " +
	"waits you can edit or delete it. /errand followed by a request starts it without a mention, and /errand " +
	"status shows yours. “" +
	app.ShortcutName + "” in the menu of a message asks in its thread."

// inThread answers a command that was given outside any thread.
const inThread = "Use this command in the thread of your request."

// interpret does what an event asks for. Doing it again changes nothing.
func (in *interpreter) interpret(ctx context.Context, e intake.Event) error {
	var env envelope
	if err := env.read(e.Body); err != nil {
		return notReadable(err)
	}
	me, err := in.me.get(ctx)
	if err != nil {
		return err
	}
	env.Event.again, env.Event.team = e.Again, me.team
	switch ev := env.Event; {
	case env.Type != "event_callback":
		return nil
	case ev.Type == reactionAdded:
		return in.onReaction(ctx, env)
	case ev.Type == appHomeOpened:
		in.onHome(ctx, ev)
		return nil
	case ev.Type == messageEvent && (ev.SubType == changed || ev.SubType == deleted):
		return in.onChange(ctx, env)
	}
	ok, err := env.isNewMessage()
	if !ok || !in.guard.access.admits(env.Event) {
		return err
	}
	return in.onMessage(ctx, env.Event)
}

// message is a message to the bot.
type message struct {
	origin origin
	text   string // Markdown, without the bot's name
	rest   string // what other people wrote that it brings along, for the agent
}

// message returns the message of an event with its words, which do not name the bot. A message without words of its own
// may still bring something along.
func (ev event) message(said words.Words) message {
	m := message{ev.origin(), said.Text, ev.brought()}
	if m.text == "" && ev.Text == "" { // some apps write only blocks
		m.text = ev.blocksBeyond("")
	}
	if m.text == "" && m.rest != "" {
		m.text = onlyBrought
	} else if m.text == "" && len(m.origin.Files) > 0 {
		m.text = onlyFiles
	}
	return m
}

// onMessage deals with a new message, or with an edited one as if it were new.
func (in *interpreter) onMessage(ctx context.Context, ev event) error {
	me, err := in.me.get(ctx)
	if err != nil {
		return err
	}
	said := words.Slack(ev.Text, me.user)
	tagged := said.Ours > 0
	untagged := !tagged && !ev.direct()
	m := ev.message(said)
	if m.text == "" && tagged && ev.ThreadTS != "" {
		m.text = onlyThread
	} else if m.text == "" && tagged {
		m.text = string(intake.Help)
	}
	if m.text == "" || ev.User == me.user || untagged && !ev.mayFollow(said) {
		return nil
	}
	thread, err := in.threadOf(ctx, m.origin)
	if err != nil || untagged && thread.Latest == "" {
		return err // people among themselves
	}
	// A mention in a channel is two events: only one of them is answered.
	answers := untagged || ev.direct() || ev.Type == appMention
	if err := in.guard.check(ctx, me, ev); err != nil {
		return in.refuse(ctx, m.origin, answers && !untagged, err)
	}
	word, isCommand := readWord(m.text)
	if late := ev.again || in.now().Sub(timeOf(ev.TS)) > lateAfter; late && !isCommand && !ev.fresh {
		now, ok, err := in.present(ctx, m.origin, ev, me)
		if err != nil || !ok {
			return err
		}
		return in.onMessage(ctx, now)
	}
	if !isCommand {
		if err := in.guard.pace(ctx, ev, m.origin, answers); err != nil {
			return in.refuse(ctx, m.origin, true, err)
		}
	}
	var reply string
	switch {
	case isCommand && !answers: // carried out for the other event
	case isCommand:
		reply, err = in.obey(ctx, m.origin, word, thread)
	default:
		err = in.begin(ctx, m, thread, answers)
	}
	if input, ok := errors.AsType[*tasks.InputError](err); ok {
		reply, err = input.Sentence, nil
	}
	if reply != "" && answers {
		in.notify(ctx, m.origin, reply)
	}
	return err
}

const ready intake.Word = "ready" // the command that readyForm matches, in Slack only

// readWord reads a message that is a command and no request.
func readWord(text string) (w intake.Word, ok bool) {
	if readyForm.MatchString(text) {
		return ready, true
	}
	return intake.ParseWord(text)
}

// begin starts what a request asks for: a list or a task.
func (in *interpreter) begin(ctx context.Context, m message, thread tasks.Thread, answers bool) error {
	if repo, isListing := readListing(m.text); isListing {
		return in.listPulls(ctx, m.origin, repo, thread, answers)
	}
	return in.submit(ctx, m, thread)
}

// refuse whispers why a request is refused, if its author is to know. Any error but a forbidden is returned.
func (in *interpreter) refuse(ctx context.Context, o origin, aloud bool, err error) error {
	why, ok := errors.AsType[forbidden](err)
	if !ok {
		return err
	}
	if !aloud || why == "" {
		return nil
	}
	if err := in.whisper(ctx, o, string(why)); err != nil && ctx.Err() == nil {
		in.log.Warn("refuse request", "channel", o.Channel, "err", err)
	}
	return nil
}

// obey carries out a command that was given in a thread and returns the answer. Carrying it out again changes nothing.
func (in *interpreter) obey(ctx context.Context, o origin, word intake.Word, thread tasks.Thread) (string, error) {
	switch {
	case word == intake.Help:
		return in.helpText(), nil
	case word == ready:
		return in.markReady(ctx, o, thread)
	case o.ThreadTS == "":
		return inThread, nil
	case thread.Latest == "":
		return intake.NothingRuns, nil
	}
	c := intake.Command{
		Desk: in.desk, ID: o.taskID(), At: timeOf(o.TS), By: in.nameOf(ctx, o.User),
		May: func(t tasks.Task) bool { return in.guard.controls(o.User, t) },
	}
	if word == intake.Status {
		return c.Status(ctx, o.threadName(), thread, in.now())
	}
	var reply intake.Reply
	err := in.as(ctx, o.User, string(word), thread.Latest, func(ctx context.Context) (err error) {
		if word == intake.Retry {
			reply, err = c.RetryLatest(ctx, thread)
		} else {
			reply, err = c.Stop(ctx, o.threadName())
		}
		return err
	})
	if errors.Is(err, tasks.ErrRefused) {
		err = nil
	}
	return reply.Text, err
}

// as does what a user asked for, and records it in the audit log.
func (in *interpreter) as(ctx context.Context, user, what, target string, do func(context.Context) error) error {
	return in.desk.As(ctx, in.sender(user), what, target, func(ctx context.Context) (bool, error) {
		return false, do(ctx)
	})
}

// listPulls answers a message that wants the open pull requests of a repository.
func (in *interpreter) listPulls(
	ctx context.Context, o origin, named string, thread tasks.Thread, answers bool,
) error {
	repo, err := in.repos.toList(o.Channel, named, thread)
	if err != nil || !answers {
		return err
	}
	t := o.task("")
	t.Repo = repo
	if err := in.desk.PermitNow(ctx, t); err != nil {
		return tasks.FromForge(err)
	}
	limited, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	pulls, err := in.repos.pulls.PullRequests(limited, repo)
	if err != nil {
		return tasks.FromForge(err)
	}
	mark := render.Marker{Task: o.taskID(), Part: render.ListPart}
	return in.postOnce(ctx, o, mark, slack.MsgOptionText(render.PullList(repo, pulls), false))
}

// submit gives a request to the desk, which may take it for the answer to a question.
func (in *interpreter) submit(ctx context.Context, m message, thread tasks.Thread) error {
	t, err := in.request(ctx, m, thread)
	if open, ok := errors.AsType[*errUndecided](err); ok {
		return in.picker.keep(ctx, m.origin, t, open)
	}
	if err != nil {
		return err
	}
	var receipt desk.Receipt
	_ = in.as(ctx, m.origin.User, "answer", "", func(ctx context.Context) error { // a refused request is no action
		receipt, err = in.desk.Submit(ctx, t)
		return nil
	})
	// an answer is text only: the files become a message after it
	if err == nil && receipt.Answered && len(m.origin.Files) > 0 {
		files := t
		files.ID, files.Prompt = t.ID+"-files", "These are the files that I attached to my answer."
		_, err = in.desk.Submit(ctx, files)
	}
	if err != nil || !receipt.New {
		return err
	}
	sign := eyes
	if receipt.Answered {
		sign = check
	}
	in.react(ctx, m.origin, sign)
	in.reports.showQueued(ctx, m.origin, t, receipt)
	return nil
}

// request returns the task that a message asks for. An *tasks.InputError says what it lacks.
func (in *interpreter) request(ctx context.Context, m message, thread tasks.Thread) (tasks.Task, error) {
	r, err := in.repos.reader.read(m.text)
	if err != nil {
		return tasks.Task{}, err
	}
	if thread, err = in.digest.threadOf(ctx, m.origin, thread); err != nil {
		return tasks.Task{}, err
	}
	if thread, err = in.withoutMistake(ctx, thread); err != nil {
		return tasks.Task{}, err
	}
	t := m.origin.task(r.prompt + m.rest)
	o := m.origin
	if u, err := in.people.get(ctx, o.User); err == nil { // mostly cached, because the guard has asked
		t.Name = cmp.Or(u.Profile.DisplayName, u.RealName, u.Name)
	}
	o.Pull, err = in.repos.place(ctx, &t, r, thread)
	o.Moved = thread.Latest != "" && t.Ref != "" && (t.Ref != thread.Ref || !strings.EqualFold(t.Repo, thread.Repo))
	t.Origin = o.json()
	return t, err
}

// withoutMistake returns a thread without the directory for which its latest task was refused: it may be misspelt. The
// next task then starts where the conversation began, which its worker knows.
func (in *interpreter) withoutMistake(ctx context.Context, thread tasks.Thread) (tasks.Thread, error) {
	if thread.Options.Directory == "" {
		return thread, nil
	}
	latest, err := in.desk.Latest(ctx, thread)
	if errors.Is(err, tasks.ErrNotFound) {
		return thread, nil
	}
	if latest.Ending != nil && latest.Ending.Option == tasks.OptionDirectory {
		thread.Options.Directory = ""
	}
	return thread, err
}

// threadOf returns what a message takes over from its thread's latest task; zero for the first message of a thread. A
// message outside any thread begins one, so nothing is looked up.
func (in *interpreter) threadOf(ctx context.Context, o origin) (tasks.Thread, error) {
	if o.ThreadTS == "" {
		return tasks.Thread{}, nil
	}
	thread, err := in.desk.Thread(ctx, o.threadName())
	if errors.Is(err, tasks.ErrNotFound) {
		return tasks.Thread{}, nil
	}
	return thread, err
}

// onReaction stops the task of a message with a stopSign, unless it has ended or was retried since. Reactions of people
// who may not stop it and to other messages mean nothing.
func (in *interpreter) onReaction(ctx context.Context, env envelope) error {
	ok, err := env.isStop()
	if !ok {
		return err
	}
	r := env.Event
	o := origin{Team: r.team, Channel: r.Item.Channel, TS: r.Item.TS, User: r.User}
	st, err := in.taskOfMessage(ctx, o, r.ItemUser)
	if errors.Is(err, tasks.ErrNotFound) && in.guard.controls(r.User, tasks.Task{Actor: r.ItemUser}) {
		return cmp.Or(in.picker.remove(ctx, o.taskID()), in.comeAgain(r))
	}
	if errors.Is(err, tasks.ErrNotFound) || err == nil && (st.Ending != nil || st.Retried.After(timeOf(r.EventTS))) {
		return nil
	}
	if err != nil {
		return err
	}
	reply := policy.NotYours
	may, err := in.guard.mayStop(ctx, in.desk, r.User, st)
	if err != nil {
		return err
	}
	if may {
		reply = intake.Stopping
	}
	err = in.as(ctx, r.User, "stop", st.Task.ID, func(ctx context.Context) error {
		if !may {
			return tasks.ErrRefused
		}
		_, err := in.desk.Cancel(ctx, st.Task.ID, in.nameOf(ctx, r.User))
		return err
	})
	if may && err != nil {
		return err
	}
	if of, err := originOf(st.Task); err == nil {
		o.ThreadTS = of.root()
	}
	in.notify(ctx, o, reply)
	return nil
}

// taskOfMessage returns the task that a message became, or that a message of the bot is about; or tasks.ErrNotFound.
func (in *interpreter) taskOfMessage(ctx context.Context, o origin, author string) (tasks.Status, error) {
	st, err := in.desk.Status(ctx, o.taskID())
	if !errors.Is(err, tasks.ErrNotFound) {
		return st, err
	}
	me, failed := in.me.get(ctx)
	if failed != nil {
		return st, failed
	}
	if author != me.user {
		return st, err
	}
	// The timestamp of a reply returns that reply, perhaps among others.
	messages, _, failed := in.page(ctx, o, slack.GetConversationRepliesParameters{})
	if failed != nil {
		return st, failed
	}
	i := slices.IndexFunc(messages, func(m slack.Message) bool {
		return m.Timestamp == o.TS && m.BotID == me.bot && tasks.ValidID(render.MarkerOf(m).Task)
	})
	if i < 0 {
		return st, err
	}
	return in.desk.Status(ctx, render.MarkerOf(messages[i]).Task)
}
