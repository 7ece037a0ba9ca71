package github

import (
	"context"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/tasks"
)

// Other bots are not heard, but for those that an operator has listed. What these ask for counts as if it had come by itself: it is done some
// times, until a person says something, so that two bots which answer each other come to an end. They give orders, and nothing else: they
// let no stranger's code run, answer no question, and neither stop nor resume anything.

// mayAsk reports whether an account is one of these bots. We ourselves never are, whatever the list says.
func (s *Source) mayAsk(login string) bool {
	return strings.HasSuffix(login, "[bot]") && slices.ContainsFunc(s.cfg.Bots, func(bot string) bool { return strings.EqualFold(bot, login) })
}

// byBot reports whether a bot has asked for a task.
func (o origin) byBot() bool { return o.Asked != nil && o.Asked.Bot }

// round counts a bot's order among the work that comes by itself. An *tasks.InputError refuses what is too much.
func (s *Source) round(ctx context.Context, t tasks.Task, o origin) error {
	var why string
	err := s.changeState(ctx, o, func(p *prState) error {
		why = p.once("bot "+o.Asked.identity(), t.ID)
		return nil
	})
	if err == nil && why != "" {
		err = &tasks.InputError{Sentence: why}
	}
	return err
}
