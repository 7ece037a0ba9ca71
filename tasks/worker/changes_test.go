package worker

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// changes reads the stored changes of a task.
func (f *fleet) changes(id string) tasks.Changes {
	f.Helper()
	c, err := f.desk.Changes(f.Context(), id)
	if err != nil {
		f.Fatal(err)
	}
	return c
}

// The changes are stored with each checkpoint and at the end, without secrets, and the answer counts them.
func TestChangesAreKept(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-hunter2"
	r, _, with := publishingFleet(t, nil)
	var during tasks.Changes
	r.agent.do = func(ctx context.Context, s agent.Spec, _ agent.Host) (agent.Result, error) {
		r.write(s.Dir, "a.txt", "one\ntwo\n"+secret+"\n")
		s.Checkpoint(ctx, agent.Session{ID: "s", Data: []byte(line(s.Prompt.ID))})
		during = r.changes(s.ID)
		r.write(s.Dir, "README.md", "two\n")
		r.write(s.Dir, "x.log", "ignored")
		return answer("done"), nil
	}
	r.worker(r.disk(t.TempDir()), with, func(c *Config) { c.Policy.Redactor = agent.NewRedactor(secret) })
	id := r.submit(r.repoTask("a"))
	e := r.ending(id)
	if !during.Live || len(during.Files) != 1 || during.Files[0].Name != "a.txt" || during.Total.Added != 3 ||
		during.At.IsZero() {
		t.Errorf("at the checkpoint: %+v", during)
	}
	c := r.changes(id)
	want := tasks.Diffstat{Files: 2, Added: 4, Removed: 1}
	if c.Live || c.Failed != "" || c.Total != want || e.Changed != want || c.Files[0].Name != "README.md" {
		t.Errorf("at the end: %+v, ending %+v", c, e.Changed)
	}
	if got := e.Note(); got != "Pull request acme/api#7: https://hub.example/7 · 2 files, +4 −1" {
		t.Error(got)
	}
	if p := c.Patch(); strings.Contains(p, "hunter2") || !strings.Contains(p, "\n+two\n+[redacted]\n") ||
		!strings.HasPrefix(p, "# This diff is incomplete") {
		t.Errorf("patch:\n%s", p)
	}
}

func TestChangesOfRunsThatFail(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	r.agent.do = func(_ context.Context, s agent.Spec, _ agent.Host) (agent.Result, error) {
		r.write(s.Dir, "a.txt", "half of it\n")
		if s.Prompt.Text != "do it" {
			if err := os.RemoveAll(s.Dir + "/.git"); err != nil {
				t.Error(err)
			}
		}
		res := answer("")
		res.Outcome = agent.Limit
		return res, nil
	}
	r.worker(r.disk(t.TempDir()))
	id := r.submit(r.repoTask("a"))
	if e := r.ending(id); e.Kind != tasks.TimedOut || e.Changed.Files != 1 || r.changes(id).Files[0].Added != 1 {
		t.Errorf("ending %+v, changes %+v", e, r.changes(id))
	}
	broken := r.repoTask("b")
	broken.Prompt = "destroy it"
	id = r.submit(broken)
	if e := r.ending(id); e.Kind != tasks.TimedOut || e.Changed.Files != 0 ||
		!strings.Contains(r.changes(id).Failed, "no git directory") {
		t.Errorf("ending %+v, changes %+v", e, r.changes(id))
	}
}

// A run that was interrupted has its changes stored, and they count when another worker ends the task.
func TestChangesOfAnInterruptedRun(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	stop := r.worker(r.disk(t.TempDir()))
	id := r.submit(r.repoTask("a"))
	<-r.started
	stop()
	if c := r.changes(id); !c.Live || c.Total.Files != 3 {
		t.Errorf("after the interruption: %+v", c)
	}
	r.worker(r.disk(t.TempDir()))
	if e := r.ending(id); e.Changed.Files != 3 || r.changes(id).Live {
		t.Errorf("at the end: %+v, %+v", e.Changed, r.changes(id))
	}
}

// What cannot be kept for another run is still shown.
func TestChangesBeyondACheckpoint(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	var during tasks.Changes
	r.agent.do = func(ctx context.Context, s agent.Spec, _ agent.Host) (agent.Result, error) {
		large := make([]byte, store.MaxCheckpoint+1)
		if _, err := rand.Read(large); err != nil {
			t.Error(err)
		}
		r.write(s.Dir, "large.bin", string(large))
		r.git(s.Dir, "add", "--all")
		r.git(s.Dir, "commit", "--quiet", "--message", "work")
		r.write(s.Dir, "README.md", "two lines\n") // of another size: a CLI is never as quick as a tick of the clock
		s.Checkpoint(ctx, agent.Session{ID: "s", Data: []byte(line(s.Prompt.ID))})
		during = r.changes(s.ID)
		return answer("done"), nil
	}
	r.worker(r.disk(t.TempDir()))
	r.ending(r.submit(r.repoTask("a")))
	if !during.Live || len(during.Files) != 2 {
		t.Errorf("at the checkpoint: %+v", during)
	}
}

// A reviewer changes nothing: the changes are those that it was asked about.
func TestReviewedChangeIsKept(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	reviewed := false
	head := r.push("refs/heads/topic", map[string]string{"new.txt": "new\n"})
	r.source.brief = func(tasks.Task) (tasks.Brief, error) { return tasks.Brief{Diff: reviewed}, nil }
	r.agent.do = func(_ context.Context, s agent.Spec, _ agent.Host) (agent.Result, error) {
		r.write(s.Dir, "README.md", "by the agent\n")
		return answer("done"), nil
	}
	r.worker(r.disk(t.TempDir()))
	for _, reviewed = range []bool{false, true} {
		task := r.repoTask("a")
		task.Profile, task.Ref = agent.Read, "topic"
		id := r.submit(task)
		if e := r.ending(id); e.Changed.Files != 0 {
			t.Errorf("ending %+v", e)
		}
		c, err := r.desk.Changes(t.Context(), id)
		if !reviewed {
			if !errors.Is(err, tasks.ErrNotFound) {
				t.Errorf("of a run that reads: %+v, %v", c, err)
			}
			continue
		}
		if err != nil || len(c.Files) != 1 || c.Files[0].Name != "new.txt" ||
			c.Head != head {
			t.Errorf("changes %+v, %v", c, err)
		}
	}
}
