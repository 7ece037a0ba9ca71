package slack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/intake"
	"github.com/errand-fleet/errand/tasks/slack/render"
)

// command is a slash command that a person gave in a channel, outside any thread.
type command struct {
	Channel string `json:"channel_id"`
	User    string `json:"user_id"`
	Text    string `json:"text"`
	Respond string `json:"response_url"` // shows answers to the person
}

func readCommand(form url.Values) command {
	return command{
		Channel: form.Get("channel_id"), User: form.Get("user_id"), Text: form.Get("text"),
		Respond: form.Get("response_url"),
	}
}

// command carries out a slash command. It returns false if there are too many.
func (l *listener) command(life context.Context, c command) bool {
	l.inbound.Accepted(l.now())
	if !channelForm.fits(c.Channel) || !userForm.fits(c.User) {
		return true
	}
	return l.finish(life, func(ctx context.Context) { l.interpreter.serveCommand(ctx, c) })
}

// finish does what a person asked for, even after life, and returns when that is done or Slack has to have its answer:
// Slack sends it only once, and tells the person if no answer comes. finish returns false if there are too many.
func (l *listener) finish(life context.Context, do func(context.Context)) bool {
	done := make(chan struct{})
	if !l.start(context.WithoutCancel(life), func(ctx context.Context) { defer close(done); do(ctx) }) {
		return false
	}
	select {
	case <-done:
	case <-time.After(l.limit):
	}
	return true
}

// serveCommand carries out a slash command and shows the answer, if there is one, to the person who gave it.
func (in *interpreter) serveCommand(ctx context.Context, c command) {
	limited, cancel := context.WithTimeout(ctx, pressLimit)
	defer cancel()
	sentence, err := in.runCommand(limited, origin{Channel: c.Channel, User: c.User}, decode(c.Text))
	if err != nil {
		in.log.Warn("serve command", "channel", c.Channel, "err", err)
		sentence = tryLater
	}
	if sentence == "" {
		return
	}
	if err := in.respond(ctx, c.Channel, c.Respond, sentence); err != nil && ctx.Err() == nil {
		in.log.Warn("answer command", "channel", c.Channel, "err", err)
	}
}

// runCommand does what the text of a slash command says and returns the answer.
func (in *interpreter) runCommand(ctx context.Context, o origin, text string) (string, error) {
	word, isWord := readWord(text)
	switch {
	case text == "":
		return in.helpText(), nil
	case isWord && word == intake.Status:
		return in.ofPerson(ctx, o.User)
	case isWord:
		return in.obey(ctx, o, word, tasks.Thread{})
	case strings.EqualFold(text, "link"):
		return in.link(ctx, o)
	case strings.EqualFold(text, "unlink"):
		return in.unlink(ctx, o.User)
	}
	return in.ask(ctx, o, text)
}

// maxOwn is how many of a person's tasks are shown to them.
const maxOwn = 10

// ownTasks returns the tasks that a person asked for in Slack: what runs, what waits, and then the newest ones that
// have ended. Those under way are listed by themselves, because any number of tasks may be newer.
func (in *interpreter) ownTasks(ctx context.Context, user string) (own []tasks.Status, err error) {
	for _, state := range []string{"running", "absorbed", "waiting", "ended"} {
		f := desk.Filter{State: state, Source: sourceName, Person: sourceName + "/" + user, Limit: maxOwn}
		for range 2 { // a busy fleet has more tasks than one listing examines
			list, err := in.desk.List(ctx, f)
			if err != nil {
				return nil, err
			}
			own = append(own, list.Tasks...)
			if f.Before = list.Next; f.Before == "" || len(own) >= maxOwn {
				break
			}
		}
	}
	return own[:min(len(own), maxOwn)], nil
}

// ofPerson describes what is under way for a person or, if nothing is, how their latest task ended; one line a task.
func (in *interpreter) ofPerson(ctx context.Context, user string) (string, error) {
	list, err := in.ownTasks(ctx, user)
	if err != nil {
		return "", err
	}
	if len(list) == 0 {
		return "You have no recent tasks in Slack.", nil
	}
	lines := []string{intake.Describe(list[0], in.now())}
	for _, st := range list[1:] {
		if st.Ending == nil {
			lines = append(lines, intake.Describe(st, in.now()))
		}
	}
	return strings.Join(lines, "\n"), nil
}

// cannotPost refuses a request that was made where the bot cannot answer.
const cannotPost = "I cannot post here. Invite me to this channel, or ask me in a direct message."

// ask deals with what a person says without a message of their own, in the thread of o if it has one. A command is
// carried out. A request is posted by the bot, and that message becomes the task as a mention in its place would. ask
// returns a sentence for the person, with their words, if nothing starts.
func (in *interpreter) ask(ctx context.Context, o origin, text string) (sentence string, err error) {
	sentence, err = in.start(ctx, o, text)
	if err != nil {
		return in.giveBack(o, text, err), nil
	}
	return sentence, nil
}

// start does what a person asks for by a command or a dialog, and returns the answer to a command.
func (in *interpreter) start(ctx context.Context, o origin, text string) (reply string, err error) {
	if err := in.mayAsk(ctx, o); err != nil {
		return "", err
	}
	me, err := in.me.get(ctx)
	if err != nil {
		return "", err
	}
	o.Team = me.team
	word, isCommand := readWord(text)
	if !isCommand {
		if err := in.guard.pace(ctx, event{Type: appMention}, o, true); err != nil {
			return "", err
		}
	}
	thread, err := in.threadOf(ctx, o)
	if err != nil {
		return "", err
	}
	if !isCommand {
		return "", in.postRequest(ctx, o, text, thread)
	}
	now := in.now() // what the command is about came before
	o.TS = fmt.Sprintf("%d.%06d", now.Unix(), now.Nanosecond()/1000)
	return in.obey(ctx, o, word, thread)
}

// giveBack says why nothing starts and returns their words to the person, who may have typed them into a dialog.
func (in *interpreter) giveBack(o origin, text string, err error) (sentence string) {
	why, forbid := errors.AsType[forbidden](err)
	input, refused := errors.AsType[*tasks.InputError](err)
	switch {
	case forbid:
		sentence = cmp.Or(string(why), intake.TooFast)
	case refused:
		sentence = input.Sentence
	case gone(err):
		sentence = cannotPost
	default:
		in.log.Warn("start request", "channel", o.Channel, "err", err)
		sentence = tryLater
	}
	return sentence + "\nYou said: " + in.redact(text)
}

// mayAsk returns a forbidden if a person may not mention the bot in a channel. After any other error that is unknown.
func (in *interpreter) mayAsk(ctx context.Context, o origin) error {
	me, err := in.me.get(ctx)
	if err != nil {
		return err
	}
	return in.guard.check(ctx, me, event{Type: appMention, Channel: o.Channel, version: version{User: o.User}})
}

const (
	askLimit  = 2 * time.Minute  // for posting a request and starting it, also while errand shuts down
	startWait = 20 * time.Second // for starting it, or deleting the post, while Redis or Slack fail
)

// postRequest posts a request and starts it. Starting it again changes nothing, so that is repeated while Redis fails.
// If it does not start, the post is deleted.
func (in *interpreter) postRequest(ctx context.Context, o origin, text string, thread tasks.Thread) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askLimit)
	defer cancel()
	asked := slack.MsgOptionText(render.Asked(o.User, in.redact(text)), false)
	err := patiently(ctx, talkWait, func() (err error) {
		o.TS, err = in.post(ctx, o, render.Marker{Part: render.RequestPart}, asked)
		return err
	})
	if err != nil {
		return err
	}
	err = intake.RetryLimited(ctx, startWait, passing, func() error {
		return in.begin(ctx, message{origin: o, text: text}, thread, true)
	})
	if err != nil {
		if failed := intake.RetryLimited(ctx, startWait, passing, func() error {
			return in.remove(ctx, o, o.TS)
		}); failed != nil {
			in.log.Warn("remove request", "channel", o.Channel, "err", failed)
		}
		return err
	}
	return nil
}

// passing returns the pause before another attempt; false if that would fail in the same way.
func passing(err error) (pause time.Duration, ok bool) {
	pause, _ = retryAfter(err)
	_, refused := errors.AsType[*tasks.InputError](err)
	return max(pause, time.Second), err != nil && !refused && code(err) == ""
}

// respond shows a sentence to the person who gave a command or chose a shortcut, also where the bot may not post.
func (c *client) respond(ctx context.Context, channel, address, sentence string) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	text := slack.MsgOptionText(render.Escape(render.NoPings(sentence)), false)
	_, _, _, err := c.api.SendMessageContext(ctx, channel,
		slack.MsgOptionResponseURL(address, slack.ResponseTypeEphemeral), text)
	if err != nil {
		return fmt.Errorf("respond: %w", withoutURL(err)) // the URL lets its owner write there
	}
	return nil
}
