package worker

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/workspace"
)

// What a clone has only as an empty directory or as a pointer is said to the agent, in the log, on the page and in the
// outlook.
func TestLacksAreSaid(t *testing.T) {
	t.Parallel()
	r, _, publishes := publishingFleet(t, func(*remote, agent.Spec) {})
	r.push("refs/heads/main", map[string]string{
		".gitattributes": "*.bin filter=lfs\n", "lib": "commit " + strings.Repeat("1", 40),
		"a.bin": "version https://git-lfs.github.com/spec/v1\noid sha256:" + strings.Repeat("a", 64) + "\nsize 1\n",
	})
	r.worker(r.disk(t.TempDir()), publishes)
	id := r.submit(r.repoTask("a"))
	s := r.resumed(id)
	said := strings.Join(r.events(id, agent.Notice), "\n")
	if !strings.Contains(s.System, "<outside what=\"the clone\">\nThese files have") {
		t.Errorf("the names of files are not quoted in\n%s", s.System)
	}
	for _, part := range []string{"directories of submodules are empty", ": lib.", "pointer to Git LFS", ": a.bin."} {
		for where, text := range map[string]string{"agent": s.System, "log": strings.Join(s.Header, "\n"), "page": said} {
			if !strings.Contains(text, part) {
				t.Errorf("%s: no %q in\n%s", where, part, text)
			}
		}
	}
	if !strings.Contains(s.System, " If a file in Git LFS has new contents, nothing is published.") {
		t.Errorf("the agent is not told what cannot be published in\n%s", s.System)
	}
	r.foresees("warning These directories of submodules are empty", "warning These files have the pointer",
		"note there are files in Git LFS")
}

// A worker fetches what was too slow for a run.
func TestSlowSubmoduleIsFetched(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	var w *workspace.Workspace
	disk := r.disk(t.TempDir())
	r.worker(func(c *Config) {
		disk(c)
		w = c.Workspace
		w.FetchLater("acme/api")
	})
	await.Until(t, "the repository is fetched", func() bool {
		mirrors, err := w.Mirrors(t.Context())
		return err == nil && len(mirrors) == 1
	})
}

// A run has the files of a submodule, and its conversation has been about that repository: what the agent remembers is
// not for those who may not read it.
func TestSubmoduleIsPartOfTheConversation(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	r.git(r.root, "clone", "--quiet", "--bare", r.bare(), filepath.Join(r.root, "acme", "lib.git"))
	lib := r.git(filepath.Join(r.root, "acme", "lib.git"), "rev-parse", "main")
	r.push("refs/heads/main", map[string]string{
		".gitmodules": "[submodule \"lib\"]\n\tpath = lib\n\turl = ../lib\n", "lib": "commit " + lib,
	})
	r.agent.do = nil
	r.worker(r.disk(t.TempDir()))
	task := r.repoTask("a")
	s := r.resumed(r.submit(task))
	if files := r.files(filepath.Join(s.Dir, "lib")); files["README.md"] != "one\n" ||
		!strings.Contains(s.System, "The files of submodules are there without their history") {
		t.Errorf("%v in\n%s", files, s.System)
	}
	past, err := rights.ConversationOf(t.Context(), r.store, task.Thread)
	if err != nil || !slices.Equal(past.Repos, []string{"acme/api", "acme/lib"}) {
		t.Errorf("the conversation has been about %q, %v", past.Repos, err)
	}
	r.foresees("!directories of submodules are empty", "!in Git LFS")
}
