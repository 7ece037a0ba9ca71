package slack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/errand-fleet/errand/internal/cache"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/intake"
	"github.com/errand-fleet/errand/tasks/policy"
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
	people    *users
	pacer     intake.Pacer
}

// may decides whether a user may ask in a channel. After an error that is unknown, and the user must be refused.
func (g *guard) may(ctx context.Context, us who, user, channel string) (policy.Verdict, error) {
	a := g.access
	decide := func(s policy.Subject) policy.Verdict {
		s.Listed = slices.Contains(a.People, user)
		return policy.Decide(s, policy.Ask, policy.Object{Takes: a.in(channel)},
			policy.Posture{People: len(a.People) > 0, Teams: len(a.Teams) > 0})
	}
	if v := decide(policy.Subject{Guest: true}); v == decide(policy.Subject{Member: true}) {
		return v, nil // whatever Slack says about them
	}
	u, err := g.people.get(ctx, user)
	if err != nil {
		return policy.Verdict{}, err
	}
	member := u.TeamID != "" &&
		(u.TeamID == us.team || us.enterprise != "" && u.Enterprise.EnterpriseID == us.enterprise)
	if len(a.Teams) > 0 {
		member = slices.Contains(a.Teams, u.TeamID)
	}
	return decide(policy.Subject{Guest: u.IsRestricted || u.IsUltraRestricted, Member: member}), nil
}

// in reports whether people may ask in a channel.
func (a Access) in(channel string) bool {
	return len(a.Channels) == 0 || strings.HasPrefix(channel, "D") || slices.Contains(a.Channels, channel)
}

// admits reports whether a message counts: it is from a person, or from a listed bot in a channel where people may ask.
func (a Access) admits(ev event) bool {
	s := policy.Subject{Bot: true, Listed: slices.Contains(a.Bots, ev.BotID)}
	return ev.BotID == "" ||
		policy.Decide(s, policy.Ask, policy.Object{Takes: a.in(ev.Channel)}, policy.Posture{}).Allowed
}

// forbidden is why a request is refused, in a sentence for its author only; empty if it is refused in silence.
type forbidden string

func (f forbidden) Error() string { return string(f) }

// check refuses a message whose author may not ask, by a forbidden. Any other error means that the event must come
// again.
func (g *guard) check(ctx context.Context, us who, ev event) error {
	if ev.BotID != "" {
		return nil // see admits
	}
	v, err := g.may(ctx, us, ev.User, ev.Channel)
	if err == nil && !v.Allowed {
		err = forbidden(v.Reason)
	}
	return err
}

// pace counts a message towards the limit of its thread. The error is a forbidden if that is exceeded, empty if it was
// said before. A message that begins a thread is never too much. A mention is two events, and each kind of event is
// counted for itself: there are fewer app_mentions, so they decide.
func (g *guard) pace(ctx context.Context, ev event, o origin, speaks bool) error {
	if o.ThreadTS == "" || ev.again {
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
	s, o := policy.Subject{Approver: slices.Contains(g.approvers, user)}, policy.Object{Own: user == t.Actor}
	return policy.Decide(s, policy.Control, o, policy.Posture{}).Allowed
}

// mayStop reports whether a user may stop a task. If another task's run has taken it up, that run would stop.
func (g *guard) mayStop(ctx context.Context, d *desk.Desk, user string, st tasks.Status) (bool, error) {
	if !g.controls(user, st.Task) || st.Into == "" {
		return g.controls(user, st.Task), nil
	}
	run, err := d.Status(ctx, st.Into)
	return err == nil && g.controls(user, run.Task), err
}

// controlled returns the task that a button is about. An *tasks.InputError says that the person may not control it.
func (b *buttons) controlled(ctx context.Context, p press, id string) (tasks.Status, error) {
	st, err := statusOf(ctx, b.desk, id)
	if err == nil && !b.guard.controls(p.origin.User, st.Task) {
		err = notAllowed()
	}
	return st, err
}

// admitted is controlled for what starts or continues work: it also refuses people who may no longer ask.
func (b *buttons) admitted(ctx context.Context, p press, id string) (tasks.Status, error) {
	st, err := b.controlled(ctx, p, id)
	if err == nil {
		err = b.mayPress(ctx, p)
	}
	return st, err
}

// mayPress returns an *tasks.InputError if a person may not ask where they press. Approvers may press everywhere.
func (b *buttons) mayPress(ctx context.Context, p press) error {
	if slices.Contains(b.guard.approvers, p.origin.User) {
		return nil
	}
	err := b.interpreter.mayAsk(ctx, p.origin)
	if why, ok := errors.AsType[forbidden](err); ok {
		return fmt.Errorf("%w: %w", tasks.ErrRefused, inputError("%s", string(why)))
	}
	return err
}

// notAllowed refuses what a person may not do.
func notAllowed() error { return fmt.Errorf("%w: %w", tasks.ErrRefused, inputError(policy.NotYours)) }

const (
	personLife = 10 * time.Minute // how long Slack's answer about a person counts
	// how long a failure to ask Slack counts, so that not every event asks while it does not answer
	errorLife = 5 * time.Second
)

// users caches what Slack says about the users who talk to us.
type users struct {
	api   *slack.Client
	cache cache.Cache[*slack.User]
}

func newUsers(api *slack.Client, now func() time.Time) *users {
	return &users{api, cache.Cache[*slack.User]{Limit: callLimit, Life: personLife, ErrorLife: errorLife, Now: now}}
}

// get looks a user up. A user whom Slack does not know or show is a stranger.
func (u *users) get(ctx context.Context, id string) (*slack.User, error) {
	return u.cache.Get(ctx, id, func(ctx context.Context) (*slack.User, error) {
		user, err := u.api.GetUserInfoContext(ctx, id)
		switch code(err) {
		case "user_not_found", "user_not_visible":
			return &slack.User{ID: id, IsStranger: true}, nil
		}
		if err != nil {
			return nil, fmt.Errorf("look up user: %w", err)
		}
		return user, nil
	})
}

// who is a bot: the user it is mentioned as, the bot_id of its posts, its workspace and organisation, and the
// workspace's URL, which ends in a slash.
type who struct{ user, bot, team, enterprise, site string }

// identity asks Slack once who the token's bot is. Threads also hold posts of other bots, perhaps of another errand.
type identity struct {
	api   *slack.Client
	cache cache.Cache[who]
}

func newIdentity(api *slack.Client, now func() time.Time) *identity {
	return &identity{api: api, cache: cache.Cache[who]{Limit: callLimit, ErrorLife: errorLife, Now: now}}
}

// known returns the bot if Slack has been asked already. It takes no time.
func (i *identity) known() (who, bool) { return i.cache.Peek("") }

// get returns the bot and asks Slack if necessary.
func (i *identity) get(ctx context.Context) (who, error) {
	me, err := i.cache.Get(ctx, "", func(ctx context.Context) (who, error) {
		resp, err := i.api.AuthTestContext(ctx)
		if err != nil {
			return who{}, err
		}
		return who{
			user: resp.UserID, bot: resp.BotID, team: resp.TeamID, enterprise: resp.EnterpriseID, site: resp.URL,
		}, nil
	})
	if err != nil {
		return who{}, fmt.Errorf("ask Slack who the bot is: %w", err)
	}
	return me, nil
}

// sender returns a user as the audit log names them.
func (in *interpreter) sender(user string) desk.Sender {
	return desk.Sender{Source: sourceName, Account: user, Name: func(ctx context.Context) string {
		return in.displayName(ctx, user)
	}}
}

// displayName returns the name that a user has chosen, or "".
func (in *interpreter) displayName(ctx context.Context, user string) string {
	if u, err := in.people.get(ctx, user); err == nil {
		return cmp.Or(u.Profile.DisplayName, u.RealName, u.Name)
	}
	return ""
}

// nameOf returns the name that people know a user by.
func (in *interpreter) nameOf(ctx context.Context, user string) string {
	if one, ok := in.names.Find(sourceName, user); ok {
		return "@" + one.Name
	}
	if u, err := in.people.get(ctx, user); err == nil && u.Name != "" {
		return "@" + u.Name
	}
	return "@" + user
}
