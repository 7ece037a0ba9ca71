package github

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/errand-fleet/errand/internal/markdown"
	"github.com/errand-fleet/errand/tasks"
)

// tellLimit bounds what is said outside of any task. Nobody waits for it, and nothing depends on it.
const tellLimit = 30 * time.Second

// noteEnding is, in the mark of what is said outside of any task, the place of an ending's name.
const noteEnding tasks.EndingKind = "note"

// strangers are told once on each pull request why errand does not serve them.
const noWork = "I work here only for people who may write to this repository. One of them can ask me for you."

// sign puts a sign on a comment, if GitHub lets us.
func (s *Source) sign(ctx context.Context, h heard, sign string) {
	s.aside(ctx, h, func(ctx context.Context) error {
		gh, err := s.client(ctx, h.origin())
		if err != nil {
			return err
		}
		return react(ctx, gh, h.origin(), h.spot, sign)
	})
}

// tell answers a comment that became no task: by a sign, and to people who may write to the repository also in words, if there are any.
func (s *Source) tell(ctx context.Context, h heard, sign, words string) {
	s.sign(ctx, h, sign)
	if h.bot {
		return // it would perhaps answer
	}
	s.aside(ctx, h, func(ctx context.Context) error {
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
		return s.send(ctx, gh, h.origin(), letter{
			task: h.task(), ending: noteEnding, to: h.spot, since: h.at, parts: []string{markdown.Neutral(words)},
		})
	})
}

// aside does what nobody waits for, where anything may be done.
func (s *Source) aside(ctx context.Context, h heard, do func(context.Context) error) {
	if s.watched(h.repo) {
		return
	}
	limited, cancel := context.WithTimeout(ctx, tellLimit)
	defer cancel()
	if err := do(limited); err != nil && ctx.Err() == nil {
		s.log.Warn("answer comment", "thread", h.thread(), "comment", h.ID, "err", err)
	}
}

// pace takes a turn on the pull request of whoever wrote a comment. It is ignored if there is none. Nobody uses up the turns of others: somebody
// who may not ask at all could keep those from being heard who may.
func (s *Source) pace(ctx context.Context, h heard) error {
	ok, err := s.pacer.AllowRequest(ctx, "ask/"+h.thread()+"/"+strings.ToLower(h.author))
	if err == nil && !ok {
		err = ignored{slower, slog.LevelInfo}
	}
	return err
}
