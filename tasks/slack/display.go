package slack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/slack-go/slack"
)

// Slack takes some 50 edits a minute for all of a workspace (its tier 3). Ours are no more in any minute, those that come at once after a
// pause included; and the last edit of a message, which would say for ever that somebody works, may have the turns that are kept from the
// others.
const (
	editEvery  = time.Minute / 40
	editBurst  = 5
	finalBurst = 10
	scatter    = 5 * time.Second // by which those who found no turn come back at different times
)

// turn takes one for an edit. That there is none just now is told in Slack's own way.
func (s *Source) turn(ctx context.Context, o origin, burst int) error {
	if s.cfg.Limiter == nil {
		return nil
	}
	wait, err := s.cfg.Limiter.Allow(ctx, "slack/chat.update/"+o.Team, editEvery, burst)
	if err != nil {
		return fmt.Errorf("take turn to edit: %w", err)
	}
	if wait > 0 {
		return &slack.RateLimitedError{RetryAfter: wait}
	}
	return nil
}

// endWait is how long the last edit of a message waits for Slack's limit on edits.
const endWait = 10 * time.Second

// lastTurn waits for a turn for the last edit of a message, but not for ever.
func (s *Source) lastTurn(ctx context.Context, o origin) {
	err := patiently(ctx, endWait, func() error { return s.turn(ctx, o, finalBurst) })
	if err != nil && ctx.Err() == nil {
		s.log.Info("edit out of turn", "channel", o.Channel, "err", err)
	}
}

// display is a status message as Slack lets us show it: with blocks, else in plain text, else not at all. It is of one goroutine at a time.
type display struct {
	source *Source
	origin origin
	ts     string // of the message
	log    *slog.Logger

	plain  bool // Slack does not take our blocks
	warned bool
}

// errNoDisplay says that there is nothing left to show anything on.
var errNoDisplay = errors.New("the message cannot be edited any more")

// post makes the message.
func (d *display) post(ctx context.Context, m marker, v view, buttons []button) (err error) {
	d.ts, err = d.source.post(ctx, d.origin, m, v.message(buttons)...)
	if unfit(err) {
		d.degrade(err)
		d.ts, err = d.source.post(ctx, d.origin, m, v.text(buttons))
	}
	return err
}

// show edits the message when its turn comes. A *slack.RateLimitedError says when to come back, errNoDisplay that this is of no use any
// more.
func (d *display) show(ctx context.Context, v view, buttons []button) error {
	err := d.source.turn(ctx, d.origin, editBurst)
	if limited, ok := errors.AsType[*slack.RateLimitedError](err); ok {
		// So that whoever has waited long has a chance against those who come at the right moment.
		limited.RetryAfter += rand.N(scatter) //nolint:gosec // nobody gains anything by guessing it
	}
	if err != nil {
		return err
	}
	return d.edit(ctx, v, buttons)
}

func (d *display) edit(ctx context.Context, v view, buttons []button) error {
	if !d.plain {
		err := d.source.edit(ctx, d.origin, d.ts, v.message(buttons)...)
		if !unfit(err) {
			return final(err)
		}
		d.degrade(err)
	}
	// Blocks that are not named stay, or go, as Slack likes (slack-go#1214).
	return final(d.source.edit(ctx, d.origin, d.ts, v.text(buttons), slack.MsgOptionBlocks()))
}

func (d *display) degrade(err error) {
	d.plain = true
	d.log.Warn("show status in plain text", "err", err)
}

// final marks the errors that will not pass.
func final(err error) error {
	if gone(err) || slices.Contains([]string{"message_not_found", "cant_update_message", "edit_window_closed"}, code(err)) {
		return fmt.Errorf("%w: %w", errNoDisplay, err)
	}
	return err
}

// complain tells the log of the first failure; the others are likely to be the same.
func (d *display) complain(ctx context.Context, err error) {
	if _, limited := errors.AsType[*slack.RateLimitedError](err); err == nil || limited || d.warned || ctx.Err() != nil {
		return
	}
	d.warned = true
	d.log.Warn("show progress", "err", err)
}
