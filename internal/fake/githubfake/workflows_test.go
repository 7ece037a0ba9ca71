package githubfake_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/githubfake"
)

func TestWorkflowsNeedAScope(t *testing.T) {
	t.Parallel()
	for name, allowed := range map[string]bool{"without": false, "with": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, r := start(t, githubfake.Config{Workflows: allowed})
			g := newGit(t, "ghp_test")
			g.run(t, "clone", r.CloneURL(), "work")
			g.dir = filepath.Join(g.home, "work")
			file := filepath.Join(g.dir, ".github", "workflows", "ci.yml")
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte("on: push\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			g.run(t, "add", "--all")
			g.run(t, "commit", "--message", "ci")
			for _, branch := range []string{"main", "new"} {
				_, err := g.try(t, "push", "origin", "HEAD:refs/heads/"+branch)
				const want = "(refusing to allow a Personal Access Token to create or update workflow `.github/workflows/ci.yml` without `workflow` scope)"
				switch {
				case allowed && err != nil:
					t.Errorf("%s: %v", branch, err)
				case !allowed && (err == nil || !strings.Contains(err.Error(), want)):
					t.Errorf("%s: %v, want %s", branch, err, want)
				}
				sha, err := r.SHA(branch)
				if took := err == nil && sha == strings.TrimSpace(g.run(t, "rev-parse", "HEAD")); took != allowed {
					t.Errorf("%s is at %s, %v", branch, sha, err)
				}
			}
		})
	}
}
