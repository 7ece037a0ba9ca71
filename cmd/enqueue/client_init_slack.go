package main

import (
	"fmt"
	"io"

	"github.com/errand-fleet/errand/tasks/slack"
)

func initSlack(args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	flags := initFlags("slack [-name NAME] [-url https://HOST]", stderr)
	name := flags.String("name", "errand", "what the app is called, and mentioned as")
	base := flags.String("url", getenv("ERRAND_PUBLIC_URL"), "where Slack reaches the front door; empty: it does not, and Socket Mode is used")
	if help, err := parseInit(flags, args); help || err != nil {
		return err
	}
	manifest, err := slack.Manifest(*name, *base)
	if err != nil {
		return fmt.Errorf("make manifest: %w", err)
	}
	say(stdout, "%s", manifest)
	say(stderr, "\n1. Open https://api.slack.com/apps, Create New App, From a manifest, and paste the above.\n")
	say(stderr, "2. Install App: set SLACK_BOT_TOKEN to the bot token, xoxb-….\n")
	if *base == "" {
		say(stderr, "3. Basic Information, App-Level Tokens: make one with connections:write and set SLACK_APP_TOKEN to it, xapp-….\n")
	} else {
		say(stderr, "3. Basic Information, App Credentials: set SLACK_SIGNING_SECRET to the signing secret.\n")
		say(stderr, "   Start errand, and let Slack verify the address, %s.\n", *base)
	}
	say(stderr, "4. Start errand, invite @%s to a channel, and run `enqueue doctor`.\n", *name)
	return nil
}
