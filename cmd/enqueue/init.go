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
	"github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/tasks/slack"
)

const initHelp = `
Without a service it writes .env with generated secrets and errand.yaml with
every setting explained and commented out. Existing files are kept.

  enqueue init slack [-name NAME] [-url https://HOST]
        print the manifest of a Slack app
  enqueue init github -url https://HOST [-name NAME] [-org ORG]
        print the manifest of a GitHub App and where to create it
`

// initCommand writes configuration files or prints a manifest to stdout and instructions to stderr. It makes no network
// requests.
func initCommand(t *terminal, flags *flag.FlagSet) func(context.Context, []string) error {
	directory := flags.String("dir", ".", "write the files into this `directory`")
	name := flags.String("name", "errand", "the app's `name`, which is also its mention; it must be unique on GitHub")
	base := flags.String("url", t.getenv("ERRAND_PUBLIC_URL"), "the front door's public `URL`; without it Slack uses Socket Mode")
	org := flags.String("org", "", "the `organisation` that owns the GitHub App")
	return func(_ context.Context, args []string) error {
		switch {
		case len(args) == 0:
			return t.initFiles(*directory)
		case len(args) > 1:
			return exitUsage
		case args[0] == "slack":
			return t.initSlack(*name, *base)
		case args[0] == "github":
			return t.initGitHub(*name, *base, *org)
		}
		return exitUsage
	}
}

// initFiles writes .env and errand.yaml and prints the next steps.
func (t *terminal) initFiles(dir string) error {
	for _, f := range []struct {
		name, text, about string
		mode              fs.FileMode
	}{
		{".env", environment(), "settings and secrets, including the console's token", 0o600},
		{"errand.yaml", routing(), "repositories, channels, people, limits", 0o644},
	} {
		path := filepath.Join(dir, f.name)
		switch err := create(path, f.text, f.mode); {
		case errors.Is(err, fs.ErrExist):
			printf(t.stdout, "kept   %s, which exists\n", path)
		case err != nil:
			return err
		default:
			printf(t.stdout, "wrote  %s: %s\n", path, f.about)
		}
	}
	begin := ""
	if filepath.Clean(dir) != "." {
		begin = "cd '" + strings.ReplaceAll(dir, "'", `'\''`) + "'; " // programs look for errand.yaml in the current directory
	}
	begin += "set -a; . ./.env; set +a"
	printf(t.stderr, `
1. Set a model credential in %[1]s: ANTHROPIC_API_KEY or one of the alternatives.
2. Set up Slack and GitHub if you want them: enqueue init slack, enqueue init github -url https://HOST
3. Start it:   %[2]s; worker -standalone
4. In another terminal, with the same settings:
               %[2]s
               enqueue doctor
               enqueue chat -follow "What can you do?"
`, filepath.Join(dir, ".env"), begin)
	return nil
}

// create writes a new file. It fails if the path exists, also as a symbolic link, and leaves no partial file.
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

// environment returns the example with generated values for the secrets that errand itself checks.
func environment() string {
	text := errand.Env
	for _, name := range []string{"ERRAND_CONSOLE_TOKEN", "REDIS_PASSWORD"} {
		text = strings.Replace(text, "\n# "+name+"=\n", "\n"+name+"="+rand.Text()+"\n", 1)
	}
	return text
}

// routing returns the example with every setting commented out. Settings get a #, comments begin with # and a blank.
func routing() string {
	var b strings.Builder
	b.WriteString("# Nothing is set yet. To use a setting, remove the # at the beginning of its lines.\n#\n")
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
		return usageError{fmt.Errorf("make manifest: %w", err)}
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
	printf(t.stdout, "%s", manifest)
	printf(t.stderr, "\n1. Open this page, which is filled in with the above:\n\n   %s?%s\n\n", page, form.Encode())
	printf(t.stderr, "   Enter a long random string as Webhook secret, set GITHUB_WEBHOOK_SECRET to the same value, and create the App.\n")
	printf(t.stderr, "2. Set GITHUB_APP_ID to the App ID that the next page shows.\n")
	printf(t.stderr, "3. Private keys, Generate a private key: save the file and set GITHUB_APP_PRIVATE_KEY_FILE to its absolute path.\n")
	printf(t.stderr, "4. Install App on the repositories that errand works on.\n")
	printf(t.stderr, "5. Start errand, and run `enqueue doctor`.\n")
	return nil
}

func (t *terminal) initSlack(name, base string) error {
	manifest, err := slack.Manifest(name, base)
	if err != nil {
		return usageError{fmt.Errorf("make manifest: %w", err)}
	}
	printf(t.stdout, "%s", manifest)
	printf(t.stderr, "\n1. Open https://api.slack.com/apps, Create New App, From a manifest, and paste the above.\n")
	printf(t.stderr, "2. Install App: set SLACK_BOT_TOKEN to the bot token, xoxb-….\n")
	if base == "" {
		printf(t.stderr, "3. Basic Information, App-Level Tokens: create one with connections:write and set SLACK_APP_TOKEN to it, xapp-….\n")
	} else {
		printf(t.stderr, "3. Basic Information, App Credentials: set SLACK_SIGNING_SECRET to the signing secret.\n")
		printf(t.stderr, "   Start errand and let Slack verify the URL, %s.\n", base)
	}
	printf(t.stderr, "4. Start errand, invite @%s to a channel, and run `enqueue doctor`.\n", name)
	return nil
}
