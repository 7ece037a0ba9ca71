package slack

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/slack-go/slack"
)

// askAgain is how long a failure to learn who we are is believed: Slack is not asked for every event while it does not answer.
const askAgain = 5 * time.Second

// who is a bot: the user it is mentioned as, the bot_id of what it posts, and where it is at home.
type who struct{ user, bot, team, enterprise string }

// identity learns once who we are, from the token. Slack's events tell of all messages, and its threads hold those of other bots,
// perhaps another errand's.
type identity struct {
	api *slack.Client
	now func() time.Time

	me atomic.Pointer[who] // nil: not known yet

	lock   chan struct{} // a mutex that can be waited for under a context; held while Slack is asked, and guards what follows
	err    error
	failed time.Time
}

func newIdentity(api *slack.Client, now func() time.Time) *identity {
	return &identity{api: api, now: now, lock: make(chan struct{}, 1)}
}

// known is who we are, if Slack has said it.
func (i *identity) known() (who, bool) {
	if me := i.me.Load(); me != nil {
		return *me, true
	}
	return who{}, false
}

// get asks Slack if it has to.
func (i *identity) get(ctx context.Context) (who, error) {
	if me, ok := i.known(); ok {
		return me, nil
	}
	select {
	case i.lock <- struct{}{}:
	case <-ctx.Done():
		return who{}, fmt.Errorf("learn who we are: %w", context.Cause(ctx))
	}
	defer func() { <-i.lock }()
	if me, ok := i.known(); ok {
		return me, nil
	}
	if i.err != nil && i.now().Sub(i.failed) < askAgain {
		return who{}, i.err
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	resp, err := i.api.AuthTestContext(ctx)
	if err != nil {
		i.err, i.failed = fmt.Errorf("learn who we are: %w", err), i.now()
		return who{}, i.err
	}
	me := who{user: resp.UserID, bot: resp.BotID, team: resp.TeamID, enterprise: resp.EnterpriseID}
	i.me.Store(&me)
	return me, nil
}
