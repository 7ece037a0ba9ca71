package main

import (
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/errand-fleet/errand/tasks/slack"
)

// initialise prints what sets a service up for errand. It talks to nobody: the manifest goes to stdout, what to do with it to stderr.
func initialise(args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("init", flag.ContinueOnError)
	flags.SetOutput(stderr)
	name := flags.String("name", "errand", "what the app is called, and mentioned as")
	base := flags.String("url", getenv("ERRAND_PUBLIC_URL"), "where Slack reaches the front door; empty: it does not, and Socket Mode is used")
	flags.Usage = func() {
		say(stderr, "usage: enqueue init slack [-name NAME] [-url https://HOST]\n")
		flags.PrintDefaults()
	}
	if len(args) == 0 || args[0] != "slack" {
		flags.Usage()
		return errUsage
	}
	switch err := flags.Parse(args[1:]); {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return errUsage
	case flags.NArg() > 0:
		flags.Usage()
		return errUsage
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
