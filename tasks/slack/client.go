package slack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"slices"
	"time"

	"github.com/slack-go/slack"

	"github.com/errand-fleet/errand/tasks/intake"
)

// callLimit bounds each call of the Web API. Nothing is retried in here: after a lost answer only the caller knows whether saying
// it again would say it twice.
const callLimit = 10 * time.Second

// How much of a thread is read: pages of what Slack gives at most, and no endless ones.
const (
	pageSize = 1000
	maxPages = 10
)

// code is Slack's word for why it refused a call, empty for any other error.
func code(err error) string {
	e, _ := errors.AsType[slack.SlackErrorResponse](err)
	return e.Err
}

// gone reports whether there is no place left to post to, and none to come.
func gone(err error) bool {
	return slices.Contains([]string{"channel_not_found", "not_in_channel", "is_archived", "thread_not_found"}, code(err))
}

// blind reports whether we are not allowed to read the thread, though perhaps to write there.
func blind(err error) bool { return code(err) == "missing_scope" }

// unfit reports whether a message was refused for its form.
func unfit(err error) bool {
	return slices.Contains([]string{"invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "msg_too_long"}, code(err))
}

// post adds a message to the thread, or to the channel where there is none. No link in it is looked up by Slack: an agent that was talked into it could otherwise send
// what it knows to anybody, in an address that nobody has to click.
func (s *Source) post(ctx context.Context, o origin, m marker, opts ...slack.MsgOption) (ts string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	if root := o.root(); root != "" {
		opts = append(opts, slack.MsgOptionTS(root))
	}
	_, ts, err = s.api.PostMessageContext(ctx, o.Channel, append(opts,
		slack.MsgOptionMetadata(m.metadata()), slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl())...)
	if err != nil {
		return "", fmt.Errorf("post %s: %w", m.part, err)
	}
	return ts, nil
}

// postOnce adds a message to the thread that is not there yet: the event that wants it may come again.
func (s *Source) postOnce(ctx context.Context, o origin, m marker, opts ...slack.MsgOption) error {
	for posted, err := range s.thread(ctx, o, o.TS, "") {
		if err != nil && !blind(err) {
			return err
		}
		if markerOf(posted) == m {
			return nil
		}
	}
	_, err := s.post(ctx, o, m, opts...)
	return err
}

// uploadLimit bounds an upload, with the calls before and after it.
const uploadLimit = time.Minute

// upload adds a message with a file to the thread. The comment is mrkdwn.
func (s *Source) upload(ctx context.Context, o origin, name, comment string, data []byte) error {
	ctx, cancel := context.WithTimeout(ctx, uploadLimit)
	defer cancel()
	_, err := s.api.UploadFileContext(ctx, slack.UploadFileParameters{
		Filename: name, Title: name, FileSize: len(data), Reader: bytes.NewReader(data), InitialComment: comment,
		Channel: o.Channel, ThreadTimestamp: o.root(),
	})
	if err != nil {
		return fmt.Errorf("upload file: %w", unaddressed(err))
	}
	return nil
}

// unaddressed is an error of a call without the address that was called, where whoever knows that may write to it.
func unaddressed(err error) error {
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

// edit replaces text and blocks of a message, which keeps its metadata.
func (s *Source) edit(ctx context.Context, o origin, ts string, opts ...slack.MsgOption) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	if _, _, _, err := s.api.UpdateMessageContext(ctx, o.Channel, ts, opts...); err != nil {
		return fmt.Errorf("edit status: %w", err)
	}
	return nil
}

// whisper shows a sentence to one person alone.
func (s *Source) whisper(ctx context.Context, o origin, sentence string) error {
	opts := []slack.MsgOption{slack.MsgOptionText(escape(quiet(sentence)), false)}
	if o.ThreadTS != "" {
		opts = append(opts, slack.MsgOptionTS(o.ThreadTS))
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	if _, err := s.api.PostEphemeralContext(ctx, o.Channel, o.User, opts...); err != nil {
		return fmt.Errorf("tell %s: %w", o.User, err)
	}
	return nil
}

// remove takes a message of ours away; one that is not there is no failure.
func (s *Source) remove(ctx context.Context, o origin, ts string) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	_, _, err := s.api.DeleteMessageContext(ctx, o.Channel, ts)
	if err != nil && code(err) != "message_not_found" {
		return fmt.Errorf("remove message: %w", err)
	}
	return nil
}

// tell shows a sentence to the person who asked alone, or where Slack does not allow that to everyone in the thread.
func (s *Source) tell(ctx context.Context, o origin, sentence string) {
	err := s.whisper(ctx, o, sentence)
	if code(err) == "" {
		if err != nil && ctx.Err() == nil { // it may have arrived, or come to nothing: no reason to say it in public
			s.log.Warn("tell who asked", "channel", o.Channel, "err", err)
		}
		return
	}
	call, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	text := slack.MsgOptionText(escape(quiet(sentence)), false)
	if _, _, err := s.api.PostMessageContext(call, o.Channel, text, slack.MsgOptionTS(o.root())); err != nil {
		s.log.Warn("tell who asked", "channel", o.Channel, "err", err)
	}
}

// The signs on what people say to us.
const (
	eyes  = "eyes"             // a request was seen and is not answered yet
	check = "white_check_mark" // an answer has reached the agent
)

// Slack takes some 50 signs a minute of an app, and more for a short while (its tier 3).
const (
	signEvery = time.Minute / 45
	signBurst = 50
)

// react puts a sign on the message. What Slack would refuse is not even sent: where so much is asked, the status messages have to do.
func (s *Source) react(ctx context.Context, o origin, sign string) {
	if !s.signs.AllowN(s.cfg.Now(), 1) {
		return
	}
	call, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	err := s.api.AddReactionContext(call, sign, slack.NewRefToMessage(o.Channel, o.TS))
	if err != nil && code(err) != "already_reacted" && ctx.Err() == nil {
		s.log.Warn("add reaction", "channel", o.Channel, "err", err)
	}
}

// lookAway takes the eyes off the request.
func (s *Source) lookAway(ctx context.Context, o origin) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	err := s.api.RemoveReactionContext(ctx, eyes, slack.NewRefToMessage(o.Channel, o.TS))
	if err != nil && code(err) != "no_reaction" {
		s.log.Warn("remove reaction", "channel", o.Channel, "err", err)
	}
}

// thread gives the messages of a thread after one time and before another, oldest first; an empty time is no bound. The root comes
// whatever the times.
func (s *Source) thread(ctx context.Context, o origin, after, before string) iter.Seq2[slack.Message, error] {
	return func(yield func(slack.Message, error) bool) {
		cursor := ""
		for range maxPages {
			messages, next, err := s.page(ctx, o, after, before, cursor)
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

func (s *Source) page(ctx context.Context, o origin, after, before, cursor string) ([]slack.Message, string, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	messages, _, next, err := s.api.GetConversationRepliesContext(ctx, &slack.GetConversationRepliesParameters{
		ChannelID: o.Channel, Timestamp: o.root(), Oldest: after, Latest: before, Cursor: cursor, Limit: pageSize,
		IncludeAllMetadata: true, // without it Slack leaves out the payload (python-slack-sdk#1501)
	})
	if err != nil {
		return nil, "", fmt.Errorf("read thread: %w", err)
	}
	return messages, next, nil
}
