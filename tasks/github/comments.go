package github

import (
	"context"
	"errors"
	"time"

	"github.com/errand-fleet/errand/internal/markdown"
)

// noteTimeout bounds the posting of messages outside of tasks. They are best effort.
const noteTimeout = 30 * time.Second

// noWork is posted once on each pull request for people without write access.
const noWork = "Only people with write access can use errand here."

// react adds a reaction to a comment, if GitHub allows it.
func (i *interpreter) react(ctx context.Context, h remarkEvent, reaction string) {
	i.respond(ctx, h, func(ctx context.Context, t thread) error { return t.react(ctx, h.spot, reaction) })
}

// note answers a comment that became no task: by reactions, and for people with write access also by a text, if any.
func (i *interpreter) note(ctx context.Context, h remarkEvent, words string, reactions ...string) {
	i.respond(ctx, h, func(ctx context.Context, t thread) error {
		var failed []error
		for _, r := range reactions {
			failed = append(failed, t.react(ctx, h.spot, r))
		}
		return errors.Join(append(failed, i.sendNote(ctx, t, h, words))...)
	})
}

func (i *interpreter) sendNote(ctx context.Context, t thread, h remarkEvent, words string) error {
	if h.bot {
		return nil // the bot might answer
	}
	p, err := i.gate.permission(ctx, h.origin(), h.author)
	if err != nil {
		return err
	}
	if !p.CanWrite() {
		first, err := i.memory.firstStranger(ctx, h.origin())
		if err != nil || !first {
			return err
		}
		words = noWork
	}
	if words == "" {
		return nil
	}
	return t.send(ctx, message{
		task: h.task(), ending: noteEnding, to: h.spot, since: h.at, parts: []string{markdown.Neutral(words)},
	})
}

// respond writes in the conversation of a remark, for which no one waits. It does nothing in repositories that are only
// watched.
func (i *interpreter) respond(ctx context.Context, h remarkEvent, write func(context.Context, thread) error) {
	if i.watched(h.repo) {
		return
	}
	limited, cancel := context.WithTimeout(ctx, noteTimeout)
	defer cancel()
	t, err := i.api.reach(limited, h.origin())
	if err == nil {
		err = write(limited, t)
	}
	if err != nil && ctx.Err() == nil {
		i.log.Warn("answer comment", "thread", h.thread(), "comment", h.ID, "err", err)
	}
}
