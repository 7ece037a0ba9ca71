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

	"github.com/errand-fleet/errand/tasks/slack/render"
)

// scatter bounds the random delay before a refused edit is tried again, so that processes do not all try at once.
const scatter = 5 * time.Second

// display is a status message in the best form that Slack takes: with blocks, else in plain text, else not at all. It
// is used by one goroutine at a time.
type display struct {
	*client
	origin origin
	ts     string // of the message
	log    *slog.Logger

	plain  bool // Slack refuses our blocks
	warned bool
}

// errNoDisplay says that the message cannot be edited any more.
var errNoDisplay = errors.New("the message cannot be edited any more")

// post posts the message.
func (d *display) post(ctx context.Context, m render.Marker, s render.Status, buttons []render.Button) (err error) {
	d.ts, err = d.client.post(ctx, d.origin, m, s.Message(buttons)...)
	if malformed(err) {
		d.usePlainText(err)
		d.ts, err = d.client.post(ctx, d.origin, m, s.Text(buttons))
	}
	return err
}

// show edits the message if it has a turn. A *slack.RateLimitedError says when to try again, errNoDisplay that it is of
// no use.
func (d *display) show(ctx context.Context, s render.Status, buttons []render.Button) error {
	err := d.takeEditTurn(ctx, d.origin, editBurst)
	if limited, ok := errors.AsType[*slack.RateLimitedError](err); ok {
		// A process that waits would otherwise lose every turn to one that asks just as it becomes free.
		limited.RetryAfter += rand.N(scatter) //nolint:gosec // no secret
	}
	if err != nil {
		return err
	}
	return d.edit(ctx, s, buttons)
}

func (d *display) edit(ctx context.Context, s render.Status, buttons []render.Button) error {
	if !d.plain {
		err := markPermanent(d.client.edit(ctx, d.origin, d.ts, s.Message(buttons)...))
		if errors.Is(err, errNoDisplay) || !malformed(err) {
			return err
		}
		d.usePlainText(err)
	}
	// Slack keeps or drops blocks that an edit does not name, as it likes (slack-go#1214).
	return markPermanent(d.client.edit(ctx, d.origin, d.ts, s.Text(buttons), slack.MsgOptionBlocks()))
}

func (d *display) usePlainText(err error) {
	d.plain = true
	d.log.Warn("show status in plain text", "err", err)
}

// markPermanent wraps errors that will not pass in errNoDisplay.
func markPermanent(err error) error {
	if refusalOf(err) == ofThread ||
		slices.Contains([]string{"message_not_found", "cant_update_message", "edit_window_closed"}, code(err)) {
		return fmt.Errorf("%w: %w", errNoDisplay, err)
	}
	return err
}

// logFirst logs the first failure; the others are likely to be the same.
func (d *display) logFirst(ctx context.Context, err error) {
	if _, limited := retryAfter(err); err == nil || limited || d.warned || ctx.Err() != nil {
		return
	}
	d.warned = true
	d.log.Warn("show progress", "err", err)
}
