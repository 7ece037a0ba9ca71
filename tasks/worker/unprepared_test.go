package worker

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/tasks"
)

// What cannot change by repetition ends the task at once, with its reason.
func TestDangerousHistoryEndsTheTask(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	r.worker(r.disk(t.TempDir()))
	bare := filepath.Join(r.root, "acme", "api.git")
	objects := t.TempDir()
	inner := r.git(bare, "rev-parse", "main^{tree}")
	r.write(objects, "tree", "40000 .git\x00"+string(unhex(t, inner)))
	tree := r.git(bare, "hash-object", "-t", "tree", "-w", "--literally", filepath.Join(objects, "tree"))
	r.git(bare, "update-ref", "refs/heads/main", r.git(bare, "commit-tree", "-m", "x", tree))
	id := r.submit(r.repoTask("a"))
	e := r.ending(id)
	if e.Kind != tasks.Refused || !strings.Contains(e.Reason, "object "+tree+": hasDotgit") {
		t.Errorf("ending = %+v", e)
	}
	if s, err := r.desk.Status(t.Context(), id); err != nil || s.Attempt != 1 {
		t.Errorf("attempt %d, %v", s.Attempt, err)
	}
}

// Whoever asked reads what git said about a repository that could not be prepared.
func TestGitsReasonIsTold(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	r.worker(r.disk(t.TempDir()))
	bare := filepath.Join(r.root, "acme", "api.git")
	blob := r.git(bare, "rev-parse", "main:README.md")
	r.git(bare, "update-ref", "refs/heads/main", r.git(bare, "commit-tree", "-m", "x", "main^{tree}"))
	if err := os.Remove(filepath.Join(bare, "objects", blob[:2], blob[2:])); err != nil {
		t.Fatal(err)
	}
	e := r.ending(r.submit(r.repoTask("a")))
	if e.Kind != tasks.Failed || !strings.Contains(e.Reason, "in 3 attempts: git clone: ") {
		t.Errorf("ending = %+v", e)
	}
}

func unhex(t *testing.T, id string) []byte {
	t.Helper()
	raw, err := hex.DecodeString(id)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
