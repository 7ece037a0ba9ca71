package wire

import (
	"os"
	"path/filepath"

	"github.com/errand-fleet/errand/config"
)

// hidden is what no run in a sandbox may see although the worker's user may: what others left in the state directory, our own
// configuration, and where people and machines usually keep credentials. What is not there does not matter.
func hidden(c config.Config) []string {
	paths := []string{c.Paths.State, ".env"}
	for _, file := range []string{c.Paths.File, c.GitHub.AppKeyFile} {
		if file != "" {
			paths = append(paths, file)
		}
	}
	// Whoever may talk to one of these is as good as root, or as the person who is logged in.
	for _, name := range []string{"containerd", "crio", "dbus", "docker.sock", "podman", "secrets", "user"} {
		paths = append(paths, filepath.Join("/run", name))
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return paths // a user without a home has nothing in it
	}
	for _, name := range []string{
		".aws", ".azure", ".claude", ".claude.json", ".config/gcloud", ".config/gh", ".docker", ".git-credentials", ".gnupg", ".kube", ".netrc",
		".npmrc", ".pypirc", ".ssh",
	} {
		paths = append(paths, filepath.Join(home, name))
	}
	return paths
}
