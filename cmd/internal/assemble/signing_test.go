package assemble

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/config"
)

// A key for commits must be usable by the worker, and by no one else: no other user, and no agent.
func TestSigningKeyIsChecked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "key")
	if out,
		err := exec.CommandContext(t.Context(), "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v\n%s", err, out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	open, bad := filepath.Join(dir, "open"), filepath.Join(dir, "bad")
	if err := os.WriteFile(open, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(bad, []byte("hush"), 0o600); err != nil {
		t.Fatal(err)
	}
	const name = "ERRAND_SIGNING_KEY"
	oneLine := strings.ReplaceAll(string(text), "\n", `\n`)
	for title, c := range map[string]struct {
		env  map[string]string
		want string
	}{
		"none": {nil, ""},
		"file": {map[string]string{name: file, "ERRAND_SANDBOX": "bwrap"}, ""},
		"text": {map[string]string{name: oneLine}, ""},
		"others": {
			map[string]string{name: open, "ERRAND_SANDBOX": "bwrap"}, name + " can be read or changed by other users",
		},
		"no sandbox": {map[string]string{name: file}, name + " is in a file that agents without a sandbox can read"},
		"no key": {
			map[string]string{name: bad, "ERRAND_SANDBOX": "bwrap"},
			name + " cannot be used: read signing key: it is not a private SSH key",
		},
		"no text": {map[string]string{name: "hush"}, name + " is neither a private key"},
		"missing": {
			map[string]string{name: filepath.Join(dir, "none"), "ERRAND_SANDBOX": "bwrap"}, name + " cannot be read",
		},
		"wrong author": {
			map[string]string{"ERRAND_COMMIT_AUTHOR": "bot"}, "ERRAND_COMMIT_AUTHOR must be a name and an address",
		},
	} {
		env := map[string]string{
			"ANTHROPIC_API_KEY": "k", "ERRAND_STATE_DIR": dir, "ERRAND_SANDBOX": "none", "ERRAND_ALLOW_ROOT": "true",
		}
		maps.Copy(env, c.env)
		got, err := Load(func(name string) string { return env[name] }, config.RoleStandalone)
		switch {
		case c.want == "" && err != nil, c.want != "" &&
			(err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hush")):
			t.Errorf("%s: %v, want %q", title, err, c.want)
		case c.want != "" || c.env == nil:
		case got.Commits.Key.Reveal() != strings.TrimSpace(string(text)) && title == "file",
			!slices.Contains(got.Secrets(), strings.Split(string(text), "\n")[2]):
			t.Errorf("%s: the key is not kept from logs", title)
		case title == "file" && !slices.Contains(hidden(got), file):
			t.Errorf("%s is not hidden", file)
		}
	}
	// A front door, which may have the same settings, does not read it.
	env := map[string]string{
		"REDIS_URL": "redis://:password-0123@127.0.0.1:1/0", "ERRAND_CONSOLE_TOKEN": "hush-console-0123",
		name: filepath.Join(dir, "none"),
	}
	if _, err := Load(func(name string) string { return env[name] }, config.RoleFrontdoor); err != nil {
		t.Errorf("front door: %v", err)
	}
}
