package slack

import (
	"context"
	"slices"

	"github.com/slack-go/slack"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/intake"
)

// Access says who may use errand. The zero value is every full member of the app's workspace, in every channel.
type Access struct {
	People   []string // users; if these or Teams are set, others may not
	Teams    []string // workspaces whose full members may
	Channels []string // where; empty: everywhere. Direct messages are always allowed
	Bots     []string // bot_ids of other bots that may. Others get no answer: they might answer back
}

// guard decides who may ask, how often, and who may stop and retry tasks.
type guard struct {
	access    Access
	approvers []string
	people    *people
	pacer     intake.Pacer
}

// may says why a user may not ask in a channel, empty if they may. After an error that is unknown, and the user must not be let in.
func (g *guard) may(ctx context.Context, us who, user, channel string) (why string, err error) {
	a := g.access
	switch {
	case !a.in(channel):
		return "I do not work in this channel.", nil
	case slices.Contains(a.People, user):
		return "", nil
	case len(a.People) > 0 && len(a.Teams) == 0:
		return "I do not work for you: you are not on the list of people who may ask me.", nil
	}
	u, err := g.people.get(ctx, user)
	switch member := us.has(u); {
	case err != nil:
		return "", err
	case u.IsRestricted || u.IsUltraRestricted:
		return "I do not work for guests.", nil
	case len(a.Teams) == 0 && !member:
		return "I work only for members of this workspace.", nil
	case len(a.Teams) > 0 && !slices.Contains(a.Teams, u.TeamID):
		return "I do not work for members of your workspace.", nil
	}
	return "", nil
}

// in reports whether people may ask in a channel.
func (a Access) in(channel string) bool {
	return len(a.Channels) == 0 || channel[0] == 'D' || slices.Contains(a.Channels, channel)
}

// has reports whether a user is of the bot's workspace or organisation.
func (w who) has(u *slack.User) bool {
	return u != nil && u.TeamID != "" && (u.TeamID == w.team || w.enterprise != "" && u.Enterprise.EnterpriseID == w.enterprise)
}

// admits reports whether a message counts: it is from a person, or from a listed bot in a channel where people may ask.
func (a Access) admits(ev event) bool {
	return ev.BotID == "" || slices.Contains(a.Bots, ev.BotID) && a.in(ev.Channel)
}

// forbidden is why a request is refused, in a sentence for its author only; empty if it is refused in silence.
type forbidden string

func (f forbidden) Error() string { return string(f) }

// check refuses a message whose author may not ask, by a forbidden. Any other error means that the event must come again.
func (g *guard) check(ctx context.Context, us who, ev event) error {
	if ev.BotID != "" {
		return nil // see admits
	}
	why, err := g.may(ctx, us, ev.User, ev.Channel)
	if err == nil && why != "" {
		err = forbidden(why + " An operator can change that.")
	}
	return err
}

// pace counts a message towards the limit of its thread. The error is a forbidden if that is exceeded, empty if it was said before.
// A message that begins a thread is never too much. A mention is two events, and each kind of event is counted for itself: there are fewer
// app_mentions, so they decide.
func (g *guard) pace(ctx context.Context, ev event, o origin, speaks bool) error {
	if o.ThreadTS == "" {
		return nil
	}
	ok, err := g.pacer.AllowRequest(ctx, "slack/"+ev.Type+"/"+o.threadName())
	if ok || err != nil {
		return err
	}
	if speaks {
		if speaks, err = g.pacer.AllowNotice(ctx, "slack/crowded/"+o.threadName()); err != nil {
			return err
		}
	}
	if !speaks {
		return forbidden("")
	}
	return forbidden(intake.TooFast)
}

// controls reports whether a user may stop a task, retry it and approve what it does.
func (g *guard) controls(user string, t tasks.Task) bool {
	return user == t.Actor || slices.Contains(g.approvers, user)
}

// mayStop reports whether a user may stop a task. If another task's run has taken it up, that run would stop.
func (g *guard) mayStop(ctx context.Context, d *tasks.Desk, user string, st tasks.Status) (bool, error) {
	if !g.controls(user, st.Task) || st.Into == "" {
		return g.controls(user, st.Task), nil
	}
	run, err := d.Status(ctx, st.Into)
	return err == nil && g.controls(user, run.Task), err
}
