package main

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/errand-fleet/errand/tasks/github"
)

func initGitHub(args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	flags := initFlags("github -url https://HOST [-name NAME] [-org ORG]", stderr)
	name := flags.String("name", "errand", "what the App is called, and mentioned as; no other App or user may be called so")
	base := flags.String("url", getenv("ERRAND_PUBLIC_URL"), "where GitHub reaches the front door")
	org := flags.String("org", "", "the organisation that the App belongs to; empty: yourself")
	if help, err := parseInit(flags, args); help || err != nil {
		return err
	}
	app := github.App{Name: *name, Base: *base}
	manifest, err := app.Manifest()
	if err != nil {
		return fmt.Errorf("make manifest: %w", err)
	}
	form, err := app.Form()
	if err != nil {
		return fmt.Errorf("make form: %w", err)
	}
	page := strings.TrimRight(cmp.Or(getenv("GITHUB_URL"), "https://github.com"), "/")
	if *org != "" {
		page += "/organizations/" + url.PathEscape(*org)
	}
	page += "/settings/apps/new"
	say(stdout, "%s", manifest)
	say(stderr, "\n1. Open this page, which comes filled in with the above:\n\n   %s?%s\n\n", page, form.Encode())
	say(stderr, "   Write a long random string into Webhook secret, set GITHUB_WEBHOOK_SECRET to the same, and create the App.\n")
	say(stderr, "2. Set GITHUB_APP_ID to the App ID that the next page shows.\n")
	say(stderr, "3. Private keys, Generate a private key: keep the file, and set GITHUB_APP_PRIVATE_KEY_FILE to its absolute path.\n")
	say(stderr, "4. Install App, on the repositories that errand works on.\n")
	say(stderr, "5. Start errand, and run `enqueue doctor`.\n")
	return nil
}
