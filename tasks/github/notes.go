package github

import (
	"context"
	"errors"
	"time"

	"github.com/errand-fleet/errand/internal/markdown"
	"github.com/errand-fleet/errand/tasks/github/thread"
)

// noteTimeout bounds the posting of messages outside of tasks. They are best effort.
const noteTimeout = 30 * time.Second

// noWork is posted once on each pull request for people without write access.
const noWork = "Only people with write access can use errand here."

// react adds a reaction to a comment, if GitHub allows it.
func (i *interpreter) react(ctx context.Context, h remarkEvent, reaction string) {
	i.respond(ctx, h, func(ctx context.Context, t thread.Thread) error { return t.React(ctx, h.Spot, reaction) })
}

// note answers a comment that became no task: by reactions, and for people with write access also by a text, if any.
func (i *interpreter) note(ctx context.Context, h remarkEvent, words string, reactions ...string) {
	i.respond(ctx, h, func(ctx context.Context, t thread.Thread) error {
		var failed []error
		for _, r := range reactions {
			failed = append(failed, t.React(ctx, h.Spot, r))
		}
		return errors.Join(append(failed, i.sendNote(ctx, t, h, words))...)
	})
}

func (i *interpreter) sendNote(ctx context.Context, t thread.Thread, h remarkEvent, words string) error {
	if h.Bot {
		return nil // the bot might answer
	}
	v, err := i.gate.MayRequest(ctx, h.Ref, h.Author)
	if err != nil {
		return err
	}
	if !v.Allowed {
		first, err := i.memory.FirstStranger(ctx, h.Ref)
		if err != nil || !first {
			return err
		}
		words = noWork
	}
	if words == "" {
		return nil
	}
	return t.Send(ctx, thread.Message{
		Task: h.task(), What: thread.Note, To: h.Spot, Since: h.At, Parts: []string{markdown.Neutral(words)},
	})
}

// respond writes in the conversation of a remark, for which no one waits. It does nothing in repositories that are only
// watched.
func (i *interpreter) respond(ctx context.Context, h remarkEvent, write func(context.Context, thread.Thread) error) {
	if i.watched(h.Repo) {
		return
	}
	limited, cancel := context.WithTimeout(ctx, noteTimeout)
	defer cancel()
	if err := i.writeIn(limited, h.Ref, write); err != nil && ctx.Err() == nil {
		i.log.Warn("answer comment", "thread", h.thread(), "comment", h.ID, "err", err)
	}
}

func (i *interpreter) writeIn(
	ctx context.Context, r thread.Ref, write func(context.Context, thread.Thread) error,
) error {
	t, err := i.api.Reach(ctx, r)
	if err != nil {
		return err
	}
	return write(ctx, t)
}
