package github

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/errand-fleet/errand/internal/markdown"
	"github.com/errand-fleet/errand/tasks"
)

// tellLimit bounds messages outside of tasks, which are best effort.
const tellLimit = 30 * time.Second

// noteEnding replaces the name of an ending in the mark of a message outside of tasks.
const noteEnding tasks.EndingKind = "note"

// noWork tells people without write access, once on each pull request, why errand does not work for them.
const noWork = "Only people with write access can use errand here."

// sign adds a reaction to a comment, if GitHub allows it.
func (s *Source) sign(ctx context.Context, h heard, sign string) {
	s.inBackground(ctx, h, func(ctx context.Context) error {
		gh, err := s.client(ctx, h.origin())
		if err != nil {
			return err
		}
		return react(ctx, gh, h.origin(), h.spot, sign)
	})
}

// postNote answers a comment that became no task: by a reaction, and for people with write access also by a text, if
// any.
func (s *Source) postNote(ctx context.Context, h heard, sign, words string) {
	s.sign(ctx, h, sign)
	if h.bot {
		return // it might answer
	}
	s.inBackground(ctx, h, func(ctx context.Context) error {
		p, err := s.may(ctx, h.origin(), h.author)
		if err == nil && !p.CanWrite() {
			var first bool
			if first, err = s.memory.firstStranger(ctx, h.origin()); !first {
				return err
			}
			words = noWork
		}
		if err != nil || words == "" {
			return err
		}
		gh, err := s.client(ctx, h.origin())
		if err != nil {
			return err
		}
		return s.send(ctx, gh, h.origin(), idempotentComment{
			task: h.task(), ending: noteEnding, to: h.spot, since: h.at, parts: []string{markdown.Neutral(words)},
		})
	})
}

// inBackground runs work that no response waits for, in repositories that errand may write to.
func (s *Source) inBackground(ctx context.Context, h heard, do func(context.Context) error) {
	if s.watched(h.repo) {
		return
	}
	limited, cancel := context.WithTimeout(ctx, tellLimit)
	defer cancel()
	if err := do(limited); err != nil && ctx.Err() == nil {
		s.log.Warn("answer comment", "thread", h.thread(), "comment", h.ID, "err", err)
	}
}

// pace counts a comment against its author's rate limit on the pull request. It returns an ignored if the limit is
// reached. Each author has a separate limit, so people without permission cannot block others.
func (s *Source) pace(ctx context.Context, h heard) error {
	ok, err := s.pacer.AllowRequest(ctx, "ask/"+h.thread()+"/"+strings.ToLower(h.author))
	if err == nil && !ok {
		err = ignored{slower, slog.LevelInfo}
	}
	return err
}
