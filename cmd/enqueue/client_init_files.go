package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/errand-fleet/errand"
)

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
