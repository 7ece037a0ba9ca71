package slack

import (
	"context"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/intake"
)

// help answers the word help. The options are those of cutOptions.
const help = "Mention me with what you want done; I answer in the thread and continue with what is said there. You can begin with options: " +
	"[repo=owner/name branch=… model=… effort=… budget=… timeout=… plan]. In the thread, say stop, status or retry, or react to a request with ❌ to stop it. " +
	"While a request waits you can edit or delete it."

// inThread answers a command that was given outside any thread.
const inThread = "Use this command in the thread of your request."

// obey carries out a command that was given in a thread and returns the answer. Carrying it out again changes nothing.
func (s *Source) obey(ctx context.Context, d *tasks.Desk, o origin, word intake.Word, thread tasks.Thread) (string, error) {
	switch {
	case word == intake.Help:
		return help, nil
	case o.ThreadTS == "":
		return inThread, nil
	case thread.Latest == "":
		return intake.NothingRuns, nil
	}
	c := intake.Command{
		Desk: d, ID: s.id(o), At: timeOf(o.TS), By: s.nameOf(ctx, o.User), May: func(t tasks.Task) bool { return s.governs(o.User, t) },
	}
	var reply intake.Reply
	var err error
	switch word {
	case intake.Status:
		reply.Text, err = c.Status(ctx, s.threadOf(o), thread, s.cfg.Now())
	case intake.Retry:
		reply, err = c.RetryLatest(ctx, thread)
	default:
		reply, err = c.Stop(ctx, s.threadOf(o))
	}
	return reply.Text, err
}

// nameOf returns the name that people know a user by.
func (s *Source) nameOf(ctx context.Context, user string) string {
	if one, ok := s.cfg.People.Find(s.Name(), user); ok {
		return "@" + one.Name
	}
	if u, err := s.people.get(ctx, user); err == nil && u.Name != "" {
		return "@" + u.Name
	}
	return "@" + user
}
