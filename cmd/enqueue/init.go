package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/errand-fleet/errand"
	"github.com/errand-fleet/errand/tasks/github"
	"github.com/errand-fleet/errand/tasks/slack"
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

// initFiles writes what errand is configured by, and says what to do then.
func (t *terminal) initFiles(dir string) error {
	for _, f := range []struct {
		name, text, about string
		mode              fs.FileMode
	}{
		{".env", environment(), "settings and secrets; the console's token is in it", 0o600},
		{"errand.yaml", routing(), "repositories, channels, people, limits", 0o644},
	} {
		path := filepath.Join(dir, f.name)
		switch err := create(path, f.text, f.mode); {
		case errors.Is(err, fs.ErrExist):
			say(t.stdout, "kept   %s, which was there\n", path)
		case err != nil:
			return err
		default:
			say(t.stdout, "wrote  %s: %s\n", path, f.about)
		}
	}
	begin := ""
	if filepath.Clean(dir) != "." {
		begin = "cd '" + strings.ReplaceAll(dir, "'", `'\''`) + "'; " // errand.yaml is looked for where a program is started
	}
	begin += "set -a; . ./.env; set +a"
	say(t.stderr, `
1. In %[1]s give errand a credential for the model: ANTHROPIC_API_KEY, or one of the others there.
2. Slack and GitHub, as you like: enqueue init slack, enqueue init github -url https://HOST
3. Start it:   %[2]s; worker -standalone
4. In another terminal, with the same settings:
               %[2]s
               enqueue doctor
               enqueue chat -follow "What can you do?"
`, filepath.Join(dir, ".env"), begin)
	return nil
}

// create writes a new file, whole or not at all; a link that is in its place counts as the file.
func create(path, text string, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return fmt.Errorf("create file: %w", err)
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), os.Remove(path))
	}
	return nil
}

// environment is the example, in which nothing is set, with the secrets that are nobody's but errand's.
func environment() string {
	text := errand.Env
	for _, name := range []string{"ERRAND_CONSOLE_TOKEN", "REDIS_PASSWORD"} {
		text = strings.Replace(text, "\n# "+name+"=\n", "\n"+name+"="+rand.Text()+"\n", 1)
	}
	return text
}

// routing is the example with a # before each line that says something to errand. Those of people begin with # and a blank.
func routing() string {
	var b strings.Builder
	b.WriteString("# Nothing is set here yet. To use a setting, take away the # that its lines begin with.\n#\n")
	for line := range strings.Lines(errand.YAML) {
		if strings.TrimSpace(line) != "" && line[0] != '#' {
			b.WriteString("#")
		}
		b.WriteString(line)
	}
	return b.String()
}

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
