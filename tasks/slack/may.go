package slack

import (
	"context"
	"slices"

	"github.com/slack-go/slack"

	"github.com/errand-fleet/errand/tasks/intake"
)

// Access says whom errand works for. The zero value is every full member of our own workspace, in every channel.
type Access struct {
	People   []string // users; with these or Teams, nobody else
	Teams    []string // workspaces, of which every full member may ask
	Channels []string // where; empty: everywhere. Direct messages are not among them
	Bots     []string // bot_ids of other bots that may ask. Others are not even answered: they might answer back
}

// may says why a user may not ask for anything in a channel, empty if he may. After an error it is not known, and nobody is let in.
func (s *Source) may(ctx context.Context, us who, user, channel string) (why string, err error) {
	a := s.cfg.Access
	switch {
	case !a.in(channel):
		return "I do not work in this channel.", nil
	case slices.Contains(a.People, user):
		return "", nil
	case len(a.People) > 0 && len(a.Teams) == 0:
		return "I do not work for you: you are not among those who may ask me.", nil
	}
	u, err := s.people.get(ctx, user)
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

// in reports whether anybody may ask in a channel.
func (a Access) in(channel string) bool {
	return len(a.Channels) == 0 || channel[0] == 'D' || slices.Contains(a.Channels, channel)
}

// has reports whether a user is of our workspace, or of the same organisation.
func (w who) has(u *slack.User) bool {
	return u != nil && u.TeamID != "" && (u.TeamID == w.team || w.enterprise != "" && u.Enterprise.EnterpriseID == w.enterprise)
}

// admits reports whether a message counts, whoever its user is: it is of no bot, or of one that is listed and where it may ask.
func (a Access) admits(ev event) bool {
	return ev.BotID == "" || slices.Contains(a.Bots, ev.BotID) && a.in(ev.Channel)
}

// forbidden is why somebody is not served. It is said to him alone, or not at all.
type forbidden string

func (f forbidden) Error() string { return string(f) }

// check is may for a message. The error is a forbidden, or means that the event must come again.
func (s *Source) check(ctx context.Context, us who, ev event) error {
	if ev.BotID != "" {
		return nil // see admits
	}
	why, err := s.may(ctx, us, ev.User, ev.Channel)
	if err == nil && why != "" {
		err = forbidden(why + " Whoever runs me can change that.")
	}
	return err
}

// pace counts a message against what its thread may ask. The error is a forbidden if that is too much, empty if it is not to be said.
// A message that begins a thread is never too much. A mention is two events, and each kind of event is counted for itself: there are fewer
// app_mentions, so they decide.
func (s *Source) pace(ctx context.Context, ev event, o origin, speaks bool) error {
	if o.ThreadTS == "" {
		return nil
	}
	ok, err := s.pacer.AllowRequest(ctx, "slack/"+ev.Type+"/"+s.threadOf(o))
	if ok || err != nil {
		return err
	}
	if speaks {
		if speaks, err = s.pacer.AllowNotice(ctx, "slack/crowded/"+s.threadOf(o)); err != nil {
			return err
		}
	}
	if !speaks {
		return forbidden("")
	}
	return forbidden(intake.TooFast)
}
