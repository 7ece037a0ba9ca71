package slack

import (
	"context"
	"fmt"
	"time"

	"github.com/slack-go/slack"

	"github.com/errand-fleet/errand/tasks/intake"
)

const (
	personLife = 10 * time.Minute // how long Slack's answer about a person counts
	errorLife  = 5 * time.Second  // how long a failure to ask Slack counts, so that not every event asks while it does not answer
	lookLimit  = 1500 * time.Millisecond
)

// people caches what Slack says about the users who talk to us.
type people struct {
	api   *slack.Client
	cache intake.Cache[*slack.User]
}

func newPeople(api *slack.Client, now func() time.Time) *people {
	return &people{api: api, cache: intake.Cache[*slack.User]{Life: personLife, ErrorLife: errorLife, Now: now}}
}

// get looks a user up. A user whom Slack does not know or show is a stranger.
func (p *people) get(ctx context.Context, id string) (*slack.User, error) {
	return p.cache.Get(ctx, id, func(ctx context.Context) (*slack.User, error) {
		ctx, cancel := context.WithTimeout(ctx, lookLimit)
		defer cancel()
		user, err := p.api.GetUserInfoContext(ctx, id)
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

// who is a bot: the user it is mentioned as, the bot_id of its posts, its workspace and organisation.
type who struct{ user, bot, team, enterprise string }

// identity asks Slack once who the token's bot is. Threads also hold posts of other bots, perhaps of another errand.
type identity struct {
	api   *slack.Client
	cache intake.Cache[who]
}

func newIdentity(api *slack.Client, now func() time.Time) *identity {
	return &identity{api: api, cache: intake.Cache[who]{ErrorLife: errorLife, Now: now}}
}

// known returns the bot if Slack has been asked already. It takes no time.
func (i *identity) known() (who, bool) { return i.cache.Peek("") }

// get returns the bot and asks Slack if necessary.
func (i *identity) get(ctx context.Context) (who, error) {
	me, err := i.cache.Get(ctx, "", func(ctx context.Context) (who, error) {
		ctx, cancel := context.WithTimeout(ctx, callLimit)
		defer cancel()
		resp, err := i.api.AuthTestContext(ctx)
		if err != nil {
			return who{}, err
		}
		return who{user: resp.UserID, bot: resp.BotID, team: resp.TeamID, enterprise: resp.EnterpriseID}, nil
	})
	if err != nil {
		return who{}, fmt.Errorf("ask Slack who the bot is: %w", err)
	}
	return me, nil
}
