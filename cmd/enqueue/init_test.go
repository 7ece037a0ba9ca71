package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/config"
	"go.yaml.in/yaml/v3"
)

// Only the manifest goes to stdout, and no server is needed.
func TestInitOfServices(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args []string
		env  map[string]string
		code int
		out  string
		said string
	}{
		"socket": {args: []string{"slack"}, out: `"socket_mode_enabled": true`, said: "SLACK_APP_TOKEN"},
		"flag": {
			args: []string{"slack", "--name", "bob", "--url", "https://e.example"},
			out:  `"request_url": "https://e.example/slack/interactions"`, said: "invite @bob",
		},
		"setting": {
			args: []string{"slack"}, env: map[string]string{"ERRAND_PUBLIC_URL": "https://e.example"},
			out: `"https://e.example/slack/events"`, said: "SLACK_SIGNING_SECRET",
		},
		"too much":  {args: []string{"slack", "x"}, code: 2, said: `unexpected argument "x"`},
		"flag typo": {args: []string{"slack", "--uri", "x"}, code: 2, said: "unknown flag: --uri"},
		"no address": {
			args: []string{"slack", "--url", "http://localhost"}, code: 2, said: "https://errand.example.com",
		},

		"nobody": {args: []string{"gitlab"}, code: 2, said: `unknown command "gitlab", try github`},
		"app": {
			args: []string{"github", "--url", "https://e.example"}, out: `"url": "https://e.example/github/webhook"`,
			said: "https://github.com/settings/apps/new?",
		},
		"app, setting": {
			args: []string{"github"}, env: map[string]string{"ERRAND_PUBLIC_URL": "https://e.example"},
			out: `"https://e.example/github/webhook"`, said: "contents=write",
		},
		"app of an organisation": {
			args: []string{"github", "--org", "acme", "--name", "bob", "--url", "https://e.example"},
			env:  map[string]string{"GITHUB_URL": "https://ghe.example"},
			out:  `"name": "bob"`, said: "https://ghe.example/organizations/acme/settings/apps/new?",
		},
		"app, too much": {args: []string{"github", "x"}, code: 2, said: `unexpected argument "x"`},
		"app, bad address": {
			args: []string{"github", "--url", "http://e.example"}, code: 2, said: "https://errand.example.com",
		},
		"app, no address": {args: []string{"github"}, out: `"name": "errand"`, said: "Set GITHUB_POLL=20s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, errs bytes.Buffer
			code := run(t.Context(), append([]string{"init"}, tc.args...),
				world{getenv: func(name string) string { return tc.env[name] }, stdout: &out, stderr: &errs})
			if code != tc.code || !strings.Contains(out.String(), tc.out) || !strings.Contains(errs.String(), tc.said) {
				t.Errorf("exit %d\n%s\n%s", code, &out, &errs)
			}
			if tc.out != "" && !json.Valid(out.Bytes()) {
				t.Errorf("not to be pasted: %s", &out)
			}
		})
	}
}

// initialised is a directory after enqueue init.
func initialised(t *testing.T, dir string) (stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"init", "--dir", dir}, world{
		getenv: func(string) string { return "" }, stdout: &out, stderr: &errs,
	}); code != 0 {
		t.Fatalf("exit %d: %s", code, &errs)
	}
	return out.String(), errs.String()
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var (
	setting = regexp.MustCompile(`(?m)^([A-Z_]+)=(.*)$`)
	prose   = regexp.MustCompile(`^ \S`)
)

// The written files are a valid configuration with nothing set but fresh secrets, which only the owner can read.
func TestInitWritesFiles(t *testing.T) {
	t.Parallel()
	dir, other := filepath.Join(t.TempDir(), "new"), t.TempDir()
	_, said := initialised(t, dir)
	for _, want := range []string{
		"ANTHROPIC_API_KEY", "enqueue init slack", "cd '" + dir + "'; set -a; . ./.env; set +a; worker -standalone",
		"enqueue doctor",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not in the next steps:\n%s", want, said)
		}
	}
	info, err := os.Stat(filepath.Join(dir, ".env"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	env := map[string]string{"ERRAND_CONFIG": filepath.Join(dir, "errand.yaml"), "ERRAND_STATE_DIR": dir}
	for _, m := range setting.FindAllStringSubmatch(read(t, dir, ".env"), -1) {
		env[m[1]] = m[2]
	}
	if len(env) != 4 || env["ERRAND_CONSOLE_TOKEN"] == env["REDIS_PASSWORD"] {
		t.Errorf("set are %v", env)
	}
	env["ANTHROPIC_API_KEY"] = "k" // the first of the next steps
	if _, err := config.Load(func(name string) string { return env[name] }, config.RoleStandalone); err != nil {
		t.Error(err)
	}
	initialised(t, other)
	if read(t, dir, ".env") == read(t, other, ".env") {
		t.Error("two fleets have the same secrets")
	}
}

func TestInitOverwritesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	elsewhere := filepath.Join(t.TempDir(), "mine")
	if err := os.Symlink(elsewhere, filepath.Join(dir, "errand.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".env"), []byte("MINE=1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _ := initialised(t, dir)
	if got := read(t, dir, ".env"); got != "MINE=1\n" || strings.Count(out, "kept ") != 2 {
		t.Errorf("%s\n%s", out, got)
	}
	if _, err := os.Stat(elsewhere); !os.IsNotExist(err) {
		t.Errorf("it wrote through a link: %v", err)
	}
}

func TestInitSaysWhatItCannotDo(t *testing.T) {
	t.Parallel()
	var errs strings.Builder
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w := world{getenv: func(string) string { return "" }, stdout: &errs, stderr: &errs}
	code := run(t.Context(), []string{"init", "--dir", file}, w)
	if code != 1 || !strings.Contains(errs.String(), "create directory: mkdir "+file) {
		t.Errorf("exit %d: %s", code, errs.String())
	}
}

// Removing the # restores the example: nothing of it is lost.
func TestInitCommentsAllKeys(t *testing.T) {
	t.Parallel()
	text := routing()
	if err := yaml.Unmarshal([]byte(text), new(yaml.Node)); err != nil {
		t.Error(err)
	}
	var back strings.Builder
	_, text, _ = strings.Cut(text, "#\n")
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "#"); ok && !prose.MatchString(rest) {
			line = rest
		}
		back.WriteString(line)
	}
	if back.String() != config.Example {
		t.Errorf("without the # it is\n%s", back.String())
	}
	for line := range strings.Lines(routing()) {
		if line != "\n" && line[0] != '#' {
			t.Errorf("%q is in force", line)
		}
	}
}
