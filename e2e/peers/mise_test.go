package peers

import (
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/environment"
	"github.com/errand-fleet/errand/internal/hostlist"
)

// The real mise installs what a repository's own file names, with the set-up and the variables that errand gives it, in
// the sandbox and through the egress proxy, and later commands find it by its shim.
func TestMise(t *testing.T) {
	t.Parallel()
	mise, err := filepath.Abs("node_modules/@jdxcode/mise-linux-x64/bin")
	if err != nil {
		t.Fatal(err)
	}
	registry := npmRegistry(t)
	host := strings.TrimPrefix(registry, "http://")
	d := environment.Declaration{
		Env: map[string]string{"npm_config_registry": registry, "MISE_NPM_PACKAGE_MANAGER": "npm"},
	}.WithMise()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mise.toml"),
		[]byte("[tools]\n\"npm:pad\" = \"1.0.0\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := agent.New(agent.Config{
		LogDir: t.TempDir(), Keeper: filepath.Join(root, "bin", "errand-keeper"), Sandbox: agent.SandboxBwrap,
		TempDir: shortDir(t), Shown: []string{mise},
		Getenv: func(name string) string {
			if name == "PATH" {
				return mise + ":" + os.Getenv("PATH")
			}
			return os.Getenv(name)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := r.Script(limited(t), agent.Script{
		ID: "mise", Dir: dir, Line: "set -e\n" + strings.Join(d.Setup, "\n") + "\nhash -r\nwhich pad\npad",
		Limit: patience, Environment: agent.Environment{
			Env: d.Env, Path: d.Path, Egress: agent.Egress{Mode: hostlist.None, Private: []string{host}},
		},
	})
	if err != nil || s.Outcome != agent.Done || !strings.Contains(s.Output, "/.local/share/mise/shims/pad\npadded") {
		t.Errorf("%v, %+v", err, s)
	}
}

// shortDir is a directory whose name is short enough for a run's sockets.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "mise") //nolint:usetesting // a test's own directory has a long name
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// npmRegistry serves version 1.0.0 of the package pad, whose program prints "padded".
func npmRegistry(t *testing.T) (url string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"package.json": `{"name":"pad","version":"1.0.0","bin":{"pad":"pad.js"}}`,
		"pad.js":       "#!/usr/bin/env node\nconsole.log('padded')\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(limited(t), "npm", "pack", "--silent")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	tarball, err := os.ReadFile(filepath.Join(dir, "pad-1.0.0.tgz"))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha512.Sum512(tarball)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /pad", func(w http.ResponseWriter, req *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{
			"name": "pad", "dist-tags": map[string]string{"latest": "1.0.0"},
			"time": map[string]string{"1.0.0": "2026-01-02T03:04:05.000Z"},
			"versions": map[string]any{"1.0.0": map[string]any{
				"name": "pad", "version": "1.0.0",
				"bin": map[string]string{"pad": "pad.js"}, "dist": map[string]string{
					"tarball":   "http://" + req.Host + "/pad.tgz",
					"integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:]),
				},
			}},
		})
	})
	mux.HandleFunc("GET /pad.tgz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(tarball) })
	// Another address than 127.0.0.1, which programs in the sandbox do not ask the proxy for.
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(mux)
	_ = server.Listener.Close()
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}
