package main

import (
	"context"
	"flag"
)

const initHelp = `
Without a service it writes .env, with fresh secrets of errand's own, and
errand.yaml, with every setting explained and commented out. What is there
already stays as it is.

  enqueue init slack [-name NAME] [-url https://HOST]
        print the manifest of a Slack app
  enqueue init github -url https://HOST [-name NAME] [-org ORG]
        print the manifest of a GitHub App, and where to make it
`

// initCommand prepares what errand needs. It talks to nobody: manifests go to stdout, what to do with them to stderr.
func initCommand(t *terminal, flags *flag.FlagSet) func(context.Context, []string) error {
	directory := flags.String("dir", ".", "write the files into this `directory`")
	name := flags.String("name", "errand", "`what` the app is called, and mentioned as; on GitHub nobody else may be")
	base := flags.String("url", t.getenv("ERRAND_PUBLIC_URL"), "`where` the service reaches the front door; without it Slack uses Socket Mode")
	org := flags.String("org", "", "the `organisation` that the GitHub App belongs to")
	return func(_ context.Context, args []string) error {
		switch {
		case len(args) == 0:
			return t.initFiles(*directory)
		case len(args) > 1:
			return misused
		case args[0] == "slack":
			return t.initSlack(*name, *base)
		case args[0] == "github":
			return t.initGitHub(*name, *base, *org)
		}
		return misused
	}
}
