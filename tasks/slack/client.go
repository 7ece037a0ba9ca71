package slack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/url"
	"time"

	"github.com/slack-go/slack"
	"golang.org/x/time/rate"

	"github.com/errand-fleet/errand/tasks/intake"
	"github.com/errand-fleet/errand/tasks/slack/render"
)

const (
	// callLimit bounds each call of the Web API. Calls are not retried here: only the caller knows whether a repetition
	// after a lost answer would post something twice.
	callLimit = 10 * time.Second
	// uploadLimit bounds an upload, with the calls before and after it.
	uploadLimit = time.Minute
)

// How much of a thread is read: pages of the largest size that Slack gives, and not endlessly many.
const (
	pageSize = 1000
	maxPages = 10
)

// client makes the calls of the Web API that errand needs.
type client struct {
	api       *slack.Client
	me        *identity
	people    *users
	limiter   intake.Limiter // of edits; nil: none
	reactions *rate.Limiter  // of this process
	redact    func(string) string
	now       func() time.Time
	log       *slog.Logger
}

// code is Slack's word for why it refused a call, empty for any other error.
func code(err error) string {
	e, _ := errors.AsType[slack.SlackErrorResponse](err)
	return e.Err
}

// noHistoryScope is logged when a message is posted although it may be in the thread already.
const noHistoryScope = "post without looking for an earlier message: the app lacks the scope " +
	"channels:history or groups:history"

// withoutURL returns an error of a call without the URL that was called, which may hold a secret.
func withoutURL(err error) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed.Err
	}
	return err
}

// patiently repeats a call while Slack's rate limit refuses it, for pauses of at most budget together.
func patiently(ctx context.Context, budget time.Duration, call func() error) error {
	return intake.RetryLimited(ctx, budget, retryAfter, call)
}

// retryAfter returns the pause that Slack's rate limit asks for; false for any other error.
func retryAfter(err error) (time.Duration, bool) {
	limited, ok := errors.AsType[*slack.RateLimitedError](err)
	if !ok {
		return 0, false
	}
	return limited.RetryAfter, true
}

// post adds a message to the thread, or to the channel. Slack must not unfurl its links: an agent that was misled could
// send what it knows to an attacker in a URL, without a click.
func (c *client) post(ctx context.Context, o origin, m render.Marker, opts ...slack.MsgOption) (ts string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	if root := o.root(); root != "" {
		opts = append(opts, slack.MsgOptionTS(root))
	}
	_, ts, err = c.api.PostMessageContext(ctx, o.Channel, append(opts,
		slack.MsgOptionMetadata(m.Metadata()), slack.MsgOptionDisableLinkUnfurl(),
		slack.MsgOptionDisableMediaUnfurl())...)
	if err != nil {
		return "", fmt.Errorf("post %s: %w", m.Part, err)
	}
	return ts, nil
}

// postOnce adds a message to the thread unless it is there already: the event that asks for it may come again.
func (c *client) postOnce(ctx context.Context, o origin, m render.Marker, opts ...slack.MsgOption) error {
	for posted, err := range c.thread(ctx, o, o.TS, "") {
		if err != nil && !unreadable(err) {
			return err
		}
		if render.MarkerOf(posted) == m {
			return nil
		}
	}
	_, err := c.post(ctx, o, m, opts...)
	return err
}

// upload adds a message with a file to the thread. The comment is mrkdwn.
func (c *client) upload(ctx context.Context, o origin, name, comment string, data []byte) error {
	ctx, cancel := context.WithTimeout(ctx, uploadLimit)
	defer cancel()
	_, err := c.api.UploadFileContext(ctx, slack.UploadFileParameters{
		Filename: name, Title: name, FileSize: len(data), Reader: bytes.NewReader(data), InitialComment: comment,
		Channel: o.Channel, ThreadTimestamp: o.root(),
	})
	if err != nil {
		return fmt.Errorf("upload file: %w", withoutURL(err)) // the URL lets its owner write the file
	}
	return nil
}

// edit replaces text and blocks of a message, which keeps its metadata.
func (c *client) edit(ctx context.Context, o origin, ts string, opts ...slack.MsgOption) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	if _, _, _, err := c.api.UpdateMessageContext(ctx, o.Channel, ts, opts...); err != nil {
		return fmt.Errorf("edit message: %w", err)
	}
	return nil
}

// Slack takes some 50 edits a minute for a whole workspace (its tier 3). The fleet makes no more in any minute,
// including those that come at once after a pause. The last edit of a message, without which it would say forever that
// the agent works, may use turns that are kept from the others.
const (
	editEvery  = time.Minute / 40
	editBurst  = 5
	finalBurst = 10
	// lastEditWait is how long the last edit of a message waits for its turn.
	lastEditWait = 10 * time.Second
)

// takeEditTurn takes a turn for an edit. Its error is a *slack.RateLimitedError if no turn is free.
func (c *client) takeEditTurn(ctx context.Context, o origin, burst int) error {
	if c.limiter == nil {
		return nil
	}
	wait, err := c.limiter.Allow(ctx, "slack/chat.update/"+o.Team, editEvery, burst)
	if err != nil {
		return fmt.Errorf("take turn to edit: %w", err)
	}
	if wait > 0 {
		return &slack.RateLimitedError{RetryAfter: wait}
	}
	return nil
}

// awaitLastEdit waits up to lastEditWait for a turn for the last edit of a message, which is made in any case.
func (c *client) awaitLastEdit(ctx context.Context, o origin) {
	err := patiently(ctx, lastEditWait, func() error { return c.takeEditTurn(ctx, o, finalBurst) })
	if err != nil && ctx.Err() == nil {
		c.log.Info("edit without a turn", "channel", o.Channel, "err", err)
	}
}

// whisper shows a sentence to one person only.
func (c *client) whisper(ctx context.Context, o origin, sentence string) error {
	return c.postEphemeral(ctx, o, slack.MsgOptionText(render.Escape(render.NoPings(sentence)), false))
}

// postEphemeral shows a message to one person only.
func (c *client) postEphemeral(ctx context.Context, o origin, opts ...slack.MsgOption) error {
	if o.ThreadTS != "" {
		opts = append(opts, slack.MsgOptionTS(o.ThreadTS))
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	if _, err := c.api.PostEphemeralContext(ctx, o.Channel, o.User, opts...); err != nil {
		return fmt.Errorf("post to %s only: %w", o.User, err)
	}
	return nil
}

// notify shows a sentence to one person only, or to everyone in the thread if Slack does not allow that.
func (c *client) notify(ctx context.Context, o origin, sentence string) {
	err := c.whisper(ctx, o, sentence)
	if code(err) == "" {
		// it may have arrived, or failed for a moment: no reason to post it in public
		if err != nil && ctx.Err() == nil {
			c.log.Warn("notify person", "channel", o.Channel, "err", err)
		}
		return
	}
	call, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	text := slack.MsgOptionText(render.Escape(render.NoPings(sentence)), false)
	if _, _, err := c.api.PostMessageContext(call, o.Channel, text, slack.MsgOptionTS(o.root())); err != nil {
		c.log.Warn("notify person", "channel", o.Channel, "err", err)
	}
}

// remove deletes a message of the bot. A message that is not there is no failure.
func (c *client) remove(ctx context.Context, o origin, ts string) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	_, _, err := c.api.DeleteMessageContext(ctx, o.Channel, ts)
	if err != nil && code(err) != "message_not_found" {
		return fmt.Errorf("remove message: %w", err)
	}
	return nil
}

// The reactions to messages of people.
const (
	eyes  = "eyes"             // a request was received and is not answered yet
	check = "white_check_mark" // an answer has reached the agent
)

// Slack takes some 50 reactions a minute from an app, and more for a short while (its tier 3).
const (
	reactEvery = time.Minute / 45
	reactBurst = 50
)

// react adds a reaction to the message. A reaction that Slack would refuse because of its rate limit is not sent.
func (c *client) react(ctx context.Context, o origin, name string) {
	if !c.reactions.AllowN(c.now(), 1) {
		return
	}
	call, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	err := c.api.AddReactionContext(call, name, slack.NewRefToMessage(o.Channel, o.TS))
	if err != nil && code(err) != "already_reacted" && ctx.Err() == nil {
		c.log.Warn("add reaction", "channel", o.Channel, "err", err)
	}
}

// removeEyes removes the eyes from the request. An app that may not do so has added none.
func (c *client) removeEyes(ctx context.Context, o origin) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	err := c.api.RemoveReactionContext(ctx, eyes, slack.NewRefToMessage(o.Channel, o.TS))
	if kind := refusalOf(err); err == nil || kind == ofForm || kind == ofThread {
		return nil // there are none, or the message is gone
	}
	if refusalOf(err) == ofCredential {
		c.log.Warn("remove reaction", "channel", o.Channel, "err", err)
		return nil
	}
	return fmt.Errorf("remove reaction: %w", err)
}

// thread yields the messages of a thread after one time and before another, oldest first; an empty time is no bound.
// The root is yielded whatever the times are.
func (c *client) thread(ctx context.Context, o origin, after, before string) iter.Seq2[slack.Message, error] {
	return func(yield func(slack.Message, error) bool) {
		cursor := ""
		for range maxPages {
			messages, next, err := c.page(ctx, o, slack.GetConversationRepliesParameters{
				Oldest: after, Latest: before, Cursor: cursor,
			})
			if err != nil {
				yield(slack.Message{}, err)
				return
			}
			for _, m := range messages {
				if !yield(m, nil) {
					return
				}
			}
			if cursor = next; cursor == "" {
				return
			}
		}
	}
}

// page reads one page of a thread.
func (c *client) page(
	ctx context.Context, o origin, p slack.GetConversationRepliesParameters,
) (list []slack.Message, next string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	p.ChannelID, p.Timestamp, p.Limit = o.Channel, o.root(), pageSize
	p.IncludeAllMetadata = true // without it Slack leaves out the payload (python-slack-sdk#1501)
	list, _, next, err = c.api.GetConversationRepliesContext(ctx, &p)
	if err != nil {
		return nil, "", fmt.Errorf("read thread: %w", err)
	}
	return list, next, nil
}

// history reads a page of a channel.
func (c *client) history(
	ctx context.Context, p slack.GetConversationHistoryParameters,
) (*slack.GetConversationHistoryResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	page, err := c.api.GetConversationHistoryContext(ctx, &p)
	if err != nil {
		return nil, fmt.Errorf("read channel %s: %w", p.ChannelID, err)
	}
	return page, nil
}
