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

// initCommand writes configuration files or prints a manifest to stdout and instructions to stderr. It makes no network
// requests.
func initCommand(t *terminal, flags *flag.FlagSet) runFunc {
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
	printText(t.stderr, "init", map[string]string{"File": filepath.Join(dir, ".env"), "Begin": begin})
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
	printf(t.stdout, "%s", manifest)
	printText(t.stderr, "init github", map[string]string{"Page": page + "/settings/apps/new?" + form.Encode()})
	return nil
}

func (t *terminal) initSlack(name, base string) error {
	manifest, err := slack.Manifest(name, base)
	if err != nil {
		return usageError{fmt.Errorf("make manifest: %w", err)}
	}
	printf(t.stdout, "%s", manifest)
	printText(t.stderr, "init slack", map[string]string{"URL": base, "Name": name})
	return nil
}
