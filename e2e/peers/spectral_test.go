package peers

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The description of the API passes Spectral's rules, which refuse a description with a mistake.
func TestSpectral(t *testing.T) {
	t.Parallel()
	path := filepath.Join(root, "web", "api", "openapi.yaml")
	if out, err := spectral(t, path); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	wrong := filepath.Join(t.TempDir(), "openapi.yaml")
	if err := os.WriteFile(wrong, []byte(strings.Replace(string(text), "operationId: ",
		"operationID: ", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := spectral(t, wrong); err == nil {
		t.Errorf("a mistake passes: %s", out)
	}
}

func spectral(t *testing.T, path string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(limited(t), filepath.Join("node_modules", ".bin", "spectral"), "lint", "--ruleset",
		"spectral.yaml", "--fail-severity", "warn", path)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	out, err := cmd.CombinedOutput()
	return string(out), err
}
