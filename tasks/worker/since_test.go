package worker

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
)

// A run with a known earlier head finds a diff of what is new beside its clone. If the earlier head no longer exists,
// the task runs without it. A symlink that an agent put in the file's place is not followed.
func TestSinceAnEarlierHead(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	bare, work := r.bare(), t.TempDir()
	r.git(work, "clone", "--quiet", bare, ".")
	head := func(branch string) string { return r.git(bare, "rev-parse", branch) }
	push := func(text string) {
		r.write(work, "new.txt", text)
		r.git(work, "add", "--all")
		r.git(work, "commit", "--quiet", "--message", text)
		r.git(work, "push", "--quiet", "--force", "origin", "HEAD:refs/heads/topic")
	}
	push("first\n")
	first := head("topic")
	push("first\nsecond\n")
	r.git(bare, "update-ref", "refs/heads/earlier", first)

	since := map[string]string{"there": first, "gone": strings.Repeat("ab", 20)}
	r.source.brief = func(t tasks.Task) (tasks.Brief, error) {
		return tasks.Brief{Diff: true, Since: since[t.Prompt], Fresh: true}, nil
	}
	found := make(chan string, 1)
	r.agent.do = func(_ context.Context, s agent.Spec, _ agent.Host) (agent.Result, error) {
		path := filepath.Join(s.Files, "since.diff")
		text, _ := os.ReadFile(path)
		_ = os.Remove(path)
		_ = os.Symlink(filepath.Join(s.Dir, "trap"), path)
		if !strings.Contains(s.System, path) {
			text = nil
		}
		if _, err := os.Lstat(filepath.Join(s.Dir, "trap")); err == nil {
			text = []byte("trapped")
		}
		found <- string(text)
		return answer("done"), nil
	}
	r.worker(r.disk(t.TempDir()))
	for _, c := range []struct {
		prompt string
		want   bool
	}{{"there", true}, {"there", true}, {"gone", false}} {
		task := r.repoTask("a")
		task.Prompt, task.Ref, task.Profile = c.prompt, head("topic"), agent.Read
		id := r.submit(task)
		text := <-found
		if got := strings.Contains(text, "\n+second\n") && !strings.Contains(text, "\n+first\n"); got != c.want {
			t.Errorf("%s: %q", c.prompt, text)
		}
		if e := r.ending(id); e.Kind != tasks.Answered {
			t.Errorf("%s: %+v", c.prompt, e)
		}
	}
}
