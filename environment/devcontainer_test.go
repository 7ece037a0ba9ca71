package environment

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseDevcontainer(t *testing.T) {
	t.Parallel()
	d, wrong := ParseDevcontainer([]byte(`{
		// a comment
		"name": "api", "image": "debian", /* another */ "features": {"ghcr.io/x:1": {}, "./gone": {}, "../out": {}, "./": {}},
		"onCreateCommand": ["npm", "ci", "it's"],
		"postCreateCommand": {"web": "cd web && make # all", "api": ["make", "api"]},
		"postStartCommand": "redis-server --daemonize yes",
		"containerEnv": {"A": "1", "HOME": "/evil", "URL": "${localEnv:URL}"},
		"remoteEnv": {"A": "2", "B": null,},
	}`), ".devcontainer.json", func(name string) string {
		if name == "gone/install.sh" {
			return ""
		}
		return "exit"
	})
	want := Declaration{
		Env:   map[string]string{"A": "2"},
		Setup: []string{`'npm' 'ci' 'it'\''s'`, "'make' 'api'", "(cd web && make # all\n)"},
		Start: []string{"(redis-server --daemonize yes\n)"},
	}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Error(diff)
	}
	said := strings.Join(wrong, "\n")
	for _, part := range []string{
		"image cannot be used", `"ghcr.io/x:1" is not a directory`, `"./gone" is`, `"../out" is`, `"./" is`,
		`containerEnv: the value of "URL"`, `remoteEnv: the value of "B"`, "HOME is set by errand",
	} {
		if !strings.Contains(said, part) {
			t.Errorf("%q lacks %q", said, part)
		}
	}
	if d, wrong := ParseDevcontainer([]byte(`{"postCreateCommand": `), ".devcontainer.json", nil); d.Setup != nil ||
		len(wrong) != 1 {
		t.Errorf("%+v, %q", d, wrong)
	}
}

// A feature that is a directory of the repository runs before the commands, with its options and their defaults, and
// runs again when it changes.
func TestLocalFeature(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"devcontainer-feature.json": `{"id": "tool", "options": {"version": {"default": "9"}, "with-docs": {"default": true}, "2.lang": {"default": "en"}}}`,
		"install.sh":                "#!/bin/sh\nprintf '%s|' \"$VERSION\" \"$WITH_DOCS\" \"$LANG\" \"$_REMOTE_USER_HOME\" > out\n",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, ".devcontainer", "tool"), 0o700),
			os.WriteFile(filepath.Join(dir, ".devcontainer", "tool", name), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	read := func(name string) string {
		text, _ := os.ReadFile(filepath.Join(dir, name))
		return string(text)
	}
	for options, want := range map[string]string{
		`"1'2"`:                  "1'2|true|en|/home/x|",
		`{"2.lang": "$(rm -r)"}`: "9|true|$(rm -r)|/home/x|",
	} {
		d, wrong := ParseDevcontainer([]byte(`{"features": {"./tool": `+options+`}, "postCreateCommand": "make"}`),
			".devcontainer/devcontainer.json", read)
		if len(wrong) != 0 || len(d.Setup) != 2 || d.Setup[1] != "(make\n)" {
			t.Fatalf("%q, %q", d.Setup, wrong)
		}
		if !slices.Contains(d.Locks, ".devcontainer/tool") || !slices.Contains(d.Locks, "go.sum") {
			t.Errorf("locks = %q", d.Locks)
		}
		cmd := exec.Command("bash", "-e", "-c", d.Setup[0])
		cmd.Dir, cmd.Env = dir, []string{"HOME=/home/x", "PATH=" + os.Getenv("PATH")}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if got := read(".devcontainer/tool/out"); got != want {
			t.Errorf("the script found %q, want %q", got, want)
		}
	}
}

// The default locks do not count against the bound of the list.
func TestManyLocalFeatures(t *testing.T) {
	t.Parallel()
	var features, want []string
	for i := range maxList {
		features = append(features, fmt.Sprintf(`"./f%02d": {}`, i))
		want = append(want, fmt.Sprintf(".devcontainer/f%02d", i))
	}
	d, wrong := ParseDevcontainer([]byte(`{"features": {`+strings.Join(features, ", ")+`}}`),
		".devcontainer/devcontainer.json", func(string) string { return "exit" })
	if diff := cmp.Diff(append(want, DefaultLocks...), d.Locks); diff != "" || len(wrong) > 0 ||
		len(d.Setup) != maxList {
		t.Errorf("%d lines, %q\n%s", len(d.Setup), wrong, diff)
	}
}
