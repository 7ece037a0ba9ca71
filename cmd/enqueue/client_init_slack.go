package main

import (
	"fmt"

	"github.com/errand-fleet/errand/tasks/slack"
)

func (t *terminal) initSlack(name, base string) error {
	manifest, err := slack.Manifest(name, base)
	if err != nil {
		return wrongUse{fmt.Errorf("make manifest: %w", err)}
	}
	say(t.stdout, "%s", manifest)
	say(t.stderr, "\n1. Open https://api.slack.com/apps, Create New App, From a manifest, and paste the above.\n")
	say(t.stderr, "2. Install App: set SLACK_BOT_TOKEN to the bot token, xoxb-….\n")
	if base == "" {
		say(t.stderr, "3. Basic Information, App-Level Tokens: make one with connections:write and set SLACK_APP_TOKEN to it, xapp-….\n")
	} else {
		say(t.stderr, "3. Basic Information, App Credentials: set SLACK_SIGNING_SECRET to the signing secret.\n")
		say(t.stderr, "   Start errand, and let Slack verify the address, %s.\n", base)
	}
	say(t.stderr, "4. Start errand, invite @%s to a channel, and run `enqueue doctor`.\n", name)
	return nil
}
