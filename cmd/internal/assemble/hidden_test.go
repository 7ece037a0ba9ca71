package assemble

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/config"
)

// The home directory is hidden as a whole, with whatever is in it, and of it only what runs need is shown: never the
// directory itself.
func TestHomeIsHidden(t *testing.T) {
	home := t.TempDir()
	in := func(names ...string) (paths []string) {
		for _, name := range names {
			path := filepath.Join(home, name)
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
			paths = append(paths, path)
		}
		return paths
	}
	bin, certificates, tools, toolchain := in("bin")[0], in("certs")[0], in("tools")[0], in("toolchain")[0]
	shims := in("pyenv/shims", "shims")
	t.Setenv("HOME", home)
	t.Setenv("PATH", filepath.Join(home, "missing")+":"+bin+":"+strings.Join(shims, ":")+":"+home+":.:/:"+
		filepath.Dir(home)+":/usr/bin")
	t.Setenv("SSL_CERT_DIR", certificates)
	c := config.Config{
		Redis:   config.Redis{URL: "unix://:pw@/var/lib/redis/socket"},
		Paths:   config.Paths{State: "/state", File: "/errand.yaml", Shown: []string{toolchain}},
		GitHub:  config.GitHub{AppKeyFile: "/key.pem"},
		Routing: config.Routing{MCP: map[string]config.Server{"a": {Command: tools}, "b": {Command: "relative"}}},
	}
	gone := hidden(c)
	for _, path := range []string{
		home, "/home", "/root", "/run", "/etc/shadow", "/state", "/errand.yaml", "/key.pem", ".env",
		"/var/lib/redis/socket",
	} {
		if !slices.Contains(gone, path) {
			t.Errorf("%s is not hidden: %v", path, gone)
		}
	}
	there := shown(c, gone)
	for _, path := range []string{bin, certificates, tools, toolchain, filepath.Dir(shims[0]), shims[1]} {
		if !slices.Contains(there, path) {
			t.Errorf("%s is not shown: %v", path, there)
		}
	}
	for _, path := range []string{home, filepath.Dir(home), "/", filepath.Join(home, "missing")} {
		if slices.Contains(there, path) {
			t.Errorf("%s is shown: %v", path, there)
		}
	}
	t.Setenv("HOME", "/usr/sbin") // of a user of the system's
	if slices.Contains(hidden(c), "/usr/sbin") {
		t.Error("the system's programs are hidden")
	}
}
