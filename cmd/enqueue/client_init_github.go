package main

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"

	"github.com/errand-fleet/errand/tasks/github"
)

func (t *terminal) initGitHub(name, base, org string) error {
	app := github.App{Name: name, Base: base}
	manifest, err := app.Manifest()
	if err != nil {
		return wrongUse{fmt.Errorf("make manifest: %w", err)}
	}
	form, err := app.Form()
	if err != nil {
		return fmt.Errorf("make form: %w", err)
	}
	page := strings.TrimRight(cmp.Or(t.getenv("GITHUB_URL"), "https://github.com"), "/")
	if org != "" {
		page += "/organizations/" + url.PathEscape(org)
	}
	page += "/settings/apps/new"
	say(t.stdout, "%s", manifest)
	say(t.stderr, "\n1. Open this page, which comes filled in with the above:\n\n   %s?%s\n\n", page, form.Encode())
	say(t.stderr, "   Write a long random string into Webhook secret, set GITHUB_WEBHOOK_SECRET to the same, and create the App.\n")
	say(t.stderr, "2. Set GITHUB_APP_ID to the App ID that the next page shows.\n")
	say(t.stderr, "3. Private keys, Generate a private key: keep the file, and set GITHUB_APP_PRIVATE_KEY_FILE to its absolute path.\n")
	say(t.stderr, "4. Install App, on the repositories that errand works on.\n")
	say(t.stderr, "5. Start errand, and run `enqueue doctor`.\n")
	return nil
}
