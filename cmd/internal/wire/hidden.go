package wire

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/config"
	"github.com/redis/go-redis/v9"
)

// secretFiles returns the files with secrets of this process.
func secretFiles(c config.Config) []string {
	files := []string{".env"}
	if c.GitHub.AppKeyFile != "" {
		files = append(files, c.GitHub.AppKeyFile)
	}
	return files
}

// hidden returns the paths that no sandboxed run may see although the worker's user may: home directories, where
// people and programs keep credentials under more names than any list has; /run, whose sockets may give the rights of
// root or of the logged-in user; other files in the state directory; and errand's configuration. Missing paths do no
// harm.
func hidden(c config.Config) []string {
	paths := append(secretFiles(c), "/home", "/root", "/run", "/var/run", "/var/mail", "/var/spool", c.Paths.State)
	if c.Paths.File != "" {
		paths = append(paths, c.Paths.File)
	}
	if o, err := redis.ParseURL(c.Redis.URL.Reveal()); err == nil && o.Network == "unix" {
		paths = append(paths, o.Addr)
	}
	// Only root can read these, so they matter to a worker that runs as root.
	keys, _ := filepath.Glob("/etc/ssh/ssh_host_*_key") // the pattern is well-formed
	paths = append(append(paths, keys...), "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d",
		"/etc/security/opasswd", "/etc/krb5.keytab", "/etc/ssl/private", "/etc/errand")
	home, err := os.UserHomeDir()
	if err != nil {
		return paths // the user has no home directory
	}
	if !ofSystem(home) {
		paths = append(paths, home)
	}
	// Hide these even if the home directory is shown because a task works there.
	for _, name := range []string{
		".aws", ".azure", ".bash_history", ".cargo/credentials.toml", ".claude", ".claude.json", ".config/gcloud", ".config/gh", ".config/git",
		".docker", ".git-credentials", ".gnupg", ".kube", ".local/share/keyrings", ".netrc", ".npmrc", ".pgpass", ".pypirc", ".ssh", ".vault-token",
	} {
		paths = append(paths, filepath.Join(home, name))
	}
	return paths
}

// ofSystem reports whether a directory is the home of system users but needed by programs.
func ofSystem(dir string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(filepath.Clean(dir), "/"), "/")
	return slices.Contains([]string{"", "bin", "dev", "etc", "lib", "lib64", "proc", "sbin", "sys", "usr", "nonexistent"}, first)
}

// shown returns the hidden paths that a run needs: those that the operator set, and those that the inherited
// environment and the configuration name.
func shown(c config.Config, hidden []string) []string {
	needed := []string{"/etc/resolv.conf", os.Getenv("SSL_CERT_FILE"), os.Getenv("NODE_EXTRA_CA_CERTS")}
	needed = append(needed, filepath.SplitList(os.Getenv("SSL_CERT_DIR"))...)
	needed = append(needed, filepath.SplitList(os.Getenv("PATH"))...)
	for _, server := range c.Routing.MCP {
		needed = append(needed, server.Command)
	}
	paths := slices.Clone(c.Paths.Shown)
	for _, path := range needed {
		if !filepath.IsAbs(path) {
			continue
		}
		real, err := filepath.EvalSymlinks(path)
		if err == nil && !slices.ContainsFunc(hidden, func(h string) bool { return within(h, real) }) {
			paths = append(paths, real)
		}
	}
	return paths
}

// within reports whether path is dir or below it.
func within(path, dir string) bool {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}
