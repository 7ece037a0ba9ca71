package slack

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"github.com/errand-fleet/errand/tasks"
)

// appHomeOpened is the type of the event that a person has opened the app's page.
const appHomeOpened = "app_home_opened"

// onHome shows a person their tasks when they open the app's home tab. It is made anew each time.
func (in *interpreter) onHome(ctx context.Context, ev event) {
	if ev.Tab != "home" || !userForm.fits(ev.User) {
		return
	}
	err := in.showHome(ctx, ev.User)
	if _, refused := errors.AsType[forbidden](err); err != nil && !refused && ctx.Err() == nil {
		in.log.Warn("show home", "user", ev.User, "err", err)
	}
}

// homeEvery is how often a person gets a new page, which takes a listing of many tasks.
const homeEvery = 5 * time.Second

// showHome publishes a person's page. Those who may not ask get none.
func (in *interpreter) showHome(ctx context.Context, user string) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	if in.limiter != nil {
		if wait, err := in.limiter.Allow(ctx, "slack/home/"+user, homeEvery, 1); err != nil || wait > 0 {
			return err
		}
	}
	// in direct messages, which may be the only place
	if err := in.mayAsk(ctx, origin{User: user, Channel: "D"}); err != nil {
		return err
	}
	own, err := in.ownTasks(ctx, user)
	if err != nil {
		return err
	}
	view := in.reports.console.Home(own, in.threadLink, in.helpText(), in.now())
	if _, err := in.api.PublishViewContext(ctx, slack.PublishViewContextRequest{UserID: user, View: view}); err != nil {
		return fmt.Errorf("publish view: %w", err)
	}
	return nil
}

// threadLink returns the URL of a task's thread; empty if it has none in Slack. Until the bot knows its workspace's
// URL, that is Slack's web client.
func (c *client) threadLink(t tasks.Task) string {
	o, err := originOf(t)
	if err != nil || o.Channel == "" {
		return ""
	}
	if me, ok := c.me.known(); ok && me.site != "" {
		return me.site + "archives/" + o.Channel + "/p" + strings.ReplaceAll(o.root(), ".", "")
	}
	return "https://app.slack.com/client/" + o.Team + "/" + o.Channel + "/thread/" + o.Channel + "-" + o.root()
}
