package worker

import (
	"crypto/rand"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/google/go-cmp/cmp"
)

// A worker with an empty disk continues a drained worker's run, with its conversation and its files.
func TestDrainedRunGoesOnElsewhere(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	stop := r.worker(r.disk(t.TempDir()))
	id := r.submit(r.repoTask("a"))
	first := <-r.started
	head := r.git(first.Dir, "rev-parse", "HEAD")
	stop()
	if s, err := r.desk.Status(t.Context(), id); err != nil || s.State != "waiting" || s.Attempt != 0 {
		t.Fatalf("after the drain: %+v, %v", s, err)
	}
	r.worker(r.disk(t.TempDir()))
	second := r.resumed(id)
	if second.Dir == first.Dir || second.Resume == nil || !strings.HasPrefix(string(second.Resume.Data), "so far") {
		t.Errorf("second run in %s resumes %+v", second.Dir, second.Resume)
	}
	if diff := cmp.Diff(everything, r.files(second.Dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if got := r.git(second.Dir, "rev-parse", "HEAD"); got != head {
		t.Errorf("HEAD is %s, want %s", got, head)
	}
	if got := r.git(second.Dir, "status", "--porcelain"); got != "M README.md\n?? untracked.txt" {
		t.Errorf("status:\n%s", got)
	}
	for _, want := range []string{"Continue where you stopped", "restored", second.Dir, first.Dir} {
		if !strings.Contains(second.Prompt.Text, want) {
			t.Errorf("the prompt does not mention %q: %s", want, second.Prompt.Text)
		}
	}
	if strings.Contains(second.Prompt.Text, "last saved") || strings.Contains(second.Prompt.Text, "could not") {
		t.Errorf("the prompt mentions a loss: %s", second.Prompt.Text)
	}
	if notes, err := r.store.Threads.SessionMeta(t.Context(), "fake/a"); err != nil ||
		!strings.Contains(string(notes), `"repos":["acme/api"]`) {
		t.Errorf("the conversation is stored with %s, %v", notes, err)
	}
}

// On the disk where the run was interrupted it continues in place, and has files that no bundle holds.
func TestDrainedRunGoesOnInPlace(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	r.source.brief = func(tasks.Task) (tasks.Brief, error) { return tasks.Brief{}, nil } // Keep saves it anyway
	disk := r.disk(t.TempDir())
	stop := r.worker(disk)
	id := r.submit(r.repoTask("a"))
	first := <-r.started
	stop()
	r.worker(disk)
	second := r.resumed(id)
	if second.Dir != first.Dir || r.files(second.Dir)["ignored.log"] != "ignored\n" ||
		r.files(second.Dir)["README.md"] != "changed\n" {
		t.Errorf("in %s with %v, before in %s", second.Dir, r.files(second.Dir), first.Dir)
	}
	if want := "You were interrupted by a restart of the worker. Continue where you stopped."; second.Prompt.Text != want {
		t.Errorf("prompt: %s", second.Prompt.Text)
	}
}

// It does not continue in place if a process may still be at work there.
func TestStuckProcessSpoilsThePlace(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	r.stuck = 1
	disk := r.disk(t.TempDir())
	stop := r.worker(disk)
	id := r.submit(r.repoTask("a"))
	<-r.started
	stop()
	r.worker(disk)
	if diff := cmp.Diff(everything, r.files(r.resumed(id).Dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// crash takes the task away from its worker as if the worker had died.
func (r *remote) crash(id string) {
	r.Helper()
	for {
		rec, err := r.store.Get(r.Context(), id)
		if err != nil {
			r.Fatal(err)
		}
		r.lapse(rec.Thread)
		_, err = r.store.Requeue(r.Context(), id, rec.Delivery, rec.Fence, true)
		if err == nil {
			return
		}
		if !errors.Is(err, store.ErrStale) { // the owner may restore the claim in between
			r.Fatal(err)
		}
	}
}

// dying is a worker that never takes over another's task.
func dying(c *Config) { c.Timing.Reconcile = time.Hour }

// A dead worker's run continues from its checkpoint, also on the same disk: session and files are from the same moment.
func TestCrashedRunGoesOnFromItsCheckpoint(t *testing.T) {
	t.Parallel()
	for name, same := range map[string]bool{"elsewhere": false, "same disk": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRemote(t)
			r.save = true
			disk := r.disk(t.TempDir())
			stop := r.worker(disk, dying)
			id := r.submit(r.repoTask("a"))
			<-r.started
			r.crash(id)
			stop()
			if !same {
				disk = r.disk(t.TempDir())
			}
			r.worker(disk)
			second := r.resumed(id)
			if diff := cmp.Diff(everything, r.files(second.Dir)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
			if second.Resume == nil || !strings.Contains(second.Prompt.Text, "last saved at") {
				t.Errorf("resumes %+v, prompt %q", second.Resume, second.Prompt.Text)
			}
		})
	}
}

// A run that was lost without a checkpoint starts again, and the agent is informed.
func TestCrashBeforeTheFirstCheckpoint(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	stop := r.worker(r.disk(t.TempDir()), dying)
	id := r.submit(r.repoTask("a"))
	<-r.started
	r.crash(id)
	stop()
	r.worker(r.disk(t.TempDir()))
	r.beginsAgain(id, "before anything was saved")
}

// beginsAgain checks that the second run has nothing of the first, and that its prompt says why.
func (r *remote) beginsAgain(id, why string) {
	r.Helper()
	second := r.resumed(id)
	if second.Resume != nil || second.Prompt.Text != "do it" || !strings.Contains(second.System, why) {
		r.Errorf("resumes %+v, prompt %q, told %q; want that %q", second.Resume, second.Prompt.Text, second.System, why)
	}
	if diff := cmp.Diff(map[string]string{".gitignore": "*.log\n", "README.md": "one\n"},
		r.files(second.Dir)); diff != "" {
		r.Errorf("files (-want +got):\n%s", diff)
	}
}

// Session and work are restored together or not at all.
func TestCheckpointThatCannotBeRestored(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(r *remote, id string){
		"session": func(r *remote, id string) { r.set("errand:checkpoint:"+id, "body", "so near") },
		"work":    func(r *remote, id string) { r.replaceWork(id, "# v2 git bundle\n\n") },
		"none":    func(r *remote, id string) { r.replaceWork(id, "") },
		"base": func(r *remote, _ string) { // the commit that the work builds on is gone
			bare := r.bare()
			tree := r.git(bare, "rev-parse", "main^{tree}")
			r.git(bare, "update-ref", "refs/heads/main", r.git(bare, "commit-tree", "-m", "another", tree))
			r.git(bare, "gc", "--quiet", "--prune=now")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRemote(t)
			stop := r.worker(r.disk(t.TempDir()))
			id := r.submit(r.repoTask("a"))
			<-r.started
			stop()
			spoil(r, id)
			r.worker(r.disk(t.TempDir()))
			r.beginsAgain(id, "cannot be restored")
		})
	}
}

// A checkpoint that this version cannot read is treated as damaged.
func TestCheckpointOfAnotherKind(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]store.Session{
		"meta":    {ID: "s", Meta: []byte(`[]`), Data: []byte("{}")},
		"session": {ID: "s", Meta: []byte(`{}`), Data: []byte("\x1f\x8bno archive")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRemote(t)
			r.agent.do = nil
			id := r.submit(r.repoTask("a"))
			dead, err := r.store.Claim(t.Context(), id, 0, "dead")
			if err == nil {
				err = dead.SaveCheckpoint(t.Context(), store.Checkpoint{Session: s})
			}
			if err != nil {
				t.Fatal(err)
			}
			r.worker(r.disk(t.TempDir()))
			if second := r.resumed(id); second.Resume != nil || second.Prompt.Text != "do it" ||
				!strings.Contains(second.System, "cannot be restored") {
				t.Errorf("resumes %+v, prompt %q, system prompt %q", second.Resume, second.Prompt.Text, second.System)
			}
		})
	}
}

// replaceWork replaces the work in the checkpoint of a waiting task.
func (r *remote) replaceWork(id, work string) {
	r.Helper()
	rec, err := r.store.Get(r.Context(), id)
	if err != nil {
		r.Fatal(err)
	}
	dead, err := r.store.Claim(r.Context(), id, rec.Delivery, "dead")
	if err != nil {
		r.Fatal(err)
	}
	c, err := r.store.Checkpoint(r.Context(), id)
	if err == nil {
		c.Work = []byte(work)
		err = dead.SaveCheckpoint(r.Context(), c)
	}
	if err != nil {
		r.Fatal(err)
	}
}

func (r *remote) set(key, field, value string) {
	r.Helper()
	if n, err := r.rdb.HSet(r.Context(), key, field, value).Result(); err != nil || n != 0 {
		r.Fatalf("%d new fields, %v", n, err)
	}
}

// The agent that resumes is informed about everything that could not be saved.
func TestWorkThatCannotBeKept(t *testing.T) {
	t.Parallel()
	noise := make([]byte, store.MaxCheckpoint+1)
	_, _ = rand.Read(noise)
	for name, c := range map[string]struct {
		work func(r *remote, dir string)
		told string
		want map[string]string
	}{
		"large file": {
			func(r *remote, dir string) { r.write(dir, "large \"file\"", string(noise)) },
			`These files could not be saved: "large \"file\"".`, everything,
		},
		"hostile": {
			func(r *remote, dir string) {
				if err := errors.Join(os.RemoveAll(dir+"/.git/objects"),
					os.Symlink(r.root+"/acme/api.git/objects", dir+"/.git/objects")); err != nil {
					r.Error(err)
				}
			},
			"Your commits and changes could not be saved. The clone is new",
			map[string]string{".gitignore": "*.log\n", "README.md": "one\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRemote(t)
			r.work = func(s agent.Spec) { r.everything(s); c.work(r, s.Dir) }
			stop := r.worker(r.disk(t.TempDir()))
			id := r.submit(r.repoTask("a"))
			<-r.started
			stop()
			r.worker(r.disk(t.TempDir()))
			second := r.resumed(id)
			if second.Resume == nil || !strings.Contains(second.Prompt.Text, c.told) {
				t.Errorf("resumes %+v, prompt %q; want %q", second.Resume, second.Prompt.Text, c.told)
			}
			if diff := cmp.Diff(c.want, r.files(second.Dir)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

// A clone that cannot be saved is still there for the worker that left it.
func TestWorkThatCannotBeKeptIsStillInPlace(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	noise := make([]byte, store.MaxCheckpoint+1)
	_, _ = rand.Read(noise)
	r.work = func(s agent.Spec) {
		r.write(s.Dir, "large", string(noise))
		r.git(s.Dir, "add", "--all")
		r.git(s.Dir, "commit", "--quiet", "--message", "large")
	}
	disk := r.disk(t.TempDir())
	stop := r.worker(disk)
	id := r.submit(r.repoTask("a"))
	<-r.started
	stop()
	r.worker(disk)
	if second := r.resumed(id); len(r.files(second.Dir)["large"]) != len(noise) ||
		strings.Contains(second.Prompt.Text, "could not") {
		t.Errorf("%d bytes, prompt %q", len(r.files(second.Dir)["large"]), second.Prompt.Text)
	}
}

// A task that a person stopped starts from the beginning when it is retried.
func TestStoppedTaskIsNotResumed(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	r.save = true
	r.worker(r.disk(t.TempDir()))
	id := r.submit(r.repoTask("a"))
	<-r.started
	if _, err := r.desk.Cancel(t.Context(), id, "Ann"); err != nil {
		t.Fatal(err)
	}
	if e := r.ending(id); e.Kind != tasks.Cancelled {
		t.Fatalf("ending = %+v", e)
	}
	if keys, err := r.rdb.Keys(t.Context(), "*checkpoint*").Result(); err != nil || len(keys) > 0 {
		t.Errorf("left %v, %v", keys, err)
	}
	r.source.mu.Lock()
	delete(r.source.closed, id)
	r.source.mu.Unlock()
	if _, err := r.desk.Retry(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if second := r.resumed(id); second.Prompt.Text != "do it" || strings.Contains(second.System, "interrupted") {
		t.Errorf("prompt %q, system %q", second.Prompt.Text, second.System)
	}
}

// A run that starts its own conversation continues in that one, and leaves the thread's conversation unchanged.
func TestFreshRunGoesOn(t *testing.T) {
	t.Parallel()
	r := newRemote(t)
	r.source.brief = func(tasks.Task) (tasks.Brief, error) { return tasks.Brief{Fresh: true}, nil }
	stop := r.worker(r.disk(t.TempDir()))
	id := r.submit(r.repoTask("a"))
	<-r.started
	stop()
	r.worker(r.disk(t.TempDir()))
	if second := r.resumed(id); second.Resume == nil || r.files(second.Dir)["untracked.txt"] == "" {
		t.Errorf("resumes %+v with %v", second.Resume, r.files(second.Dir))
	}
	if _, err := r.store.Threads.Session(t.Context(), "fake/a"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("session of the thread: %v", err)
	}
}

// Without a clone only the conversation is saved, and the agent is informed of that.
func TestRunWithoutCloneGoesOn(t *testing.T) {
	t.Parallel()
	local := t.TempDir()
	for name, c := range map[string]struct{ dir, told string }{
		"scratch": {"", "The scratch directory is not checkpointed. Inspect it first."},
		"local":   {local, "The local directory is not checkpointed and may differ on this machine. Inspect it first."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRemote(t)
			r.work = func(s agent.Spec) { r.write(s.Dir, "x", "x") }
			stop := r.worker(r.disk(t.TempDir()))
			task := r.task("a", "do it")
			task.Dir = c.dir
			id := r.submit(task)
			<-r.started
			stop()
			r.worker(r.disk(t.TempDir()))
			if second := r.resumed(id); second.Resume == nil || !strings.Contains(second.Prompt.Text, c.told) {
				t.Errorf("resumes %+v, prompt %q", second.Resume, second.Prompt.Text)
			}
		})
	}
}
