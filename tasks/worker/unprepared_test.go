package worker

import (
	"context"
	"encoding/hex"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/workspace"
)

// What cannot change by repetition ends the task at once, with its reason.
func TestDangerousHistoryEndsTheTask(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	r.worker(r.disk(t.TempDir()))
	bare := r.bare()
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
	bare := r.bare()
	blob := r.git(bare, "rev-parse", "main:README.md")
	r.git(bare, "update-ref", "refs/heads/main", r.git(bare, "commit-tree", "-m", "x", "main^{tree}"))
	if err := os.Remove(filepath.Join(bare, "objects", blob[:2], blob[2:])); err != nil {
		t.Fatal(err)
	}
	id := r.submit(r.repoTask("a"))
	r.put("errand:task:"+id, "attempt", strconv.Itoa(maxAttempts-1))
	r.worker(r.disk(t.TempDir()))
	e := r.ending(id)
	if e.Kind != tasks.Failed || !strings.Contains(e.Reason, "in 3 attempts: git clone: ") {
		t.Errorf("ending = %+v", e)
	}
}

// The same holds for what the forge refuses, and a limit of the forge is waited for.
func TestForgeRefusesTheCredential(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	answers := []error{
		&forge.LimitError{At: time.Now(), Why: "GitHub accepts no requests"},
		&forge.RefusedError{Sentence: "errand is not installed there."},
	}
	var asked atomic.Int64
	r.worker(func(c *Config) {
		var err error
		c.Workspace, err = workspace.New(workspace.Config{
			Dir: t.TempDir(), URL: func(string) string { return "http://127.0.0.1:1/x.git" },
			Credential: func(context.Context, string) (string, string, error) {
				return "", "", answers[min(int(asked.Add(1)), len(answers))-1]
			},
		})
		if err != nil {
			t.Error(err)
		}
	})
	id := r.submit(r.repoTask("a"))
	if e := r.ending(id); e.Kind != tasks.Refused || e.Reason != "errand is not installed there." {
		t.Errorf("ending = %+v", e)
	}
	if s, err := r.desk.Status(t.Context(), id); err != nil || s.Attempt != 1 || asked.Load() != 2 {
		t.Errorf("attempt %d after %d calls, %v", s.Attempt, asked.Load(), err)
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
