package worker

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/workspace"
)

func TestRetentionTakesTheOldest(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, tc := range map[string]struct {
		bound Bound
		stays []int // that cannot be removed
		want  []int // those removed; there are five, a day apart, the first the youngest, of 10 bytes each
	}{
		"no bound":         {},
		"by age":           {bound: Bound{Age: 60 * time.Hour}, want: []int{4, 3}},
		"by size":          {bound: Bound{Size: 35}, want: []int{4, 3}},
		"just fits":        {bound: Bound{Size: 50}},
		"by both":          {bound: Bound{Age: 84 * time.Hour, Size: 20}, want: []int{4, 3, 2}},
		"what stays":       {bound: Bound{Age: 60 * time.Hour}, stays: []int{4}, want: []int{3}},
		"what stays fills": {bound: Bound{Size: 30}, stays: []int{4, 2}, want: []int{3, 1}},
	} {
		var got []int
		var all []diskItem
		for n := range 5 {
			all = append(all, diskItem{now.Add(-time.Duration(n) * 24 * time.Hour), 10, func() (bool, error) {
				if slices.Contains(tc.stays, n) {
					return false, nil
				}
				got = append(got, n)
				return true, nil
			}})
		}
		if err := tc.bound.apply(now, all); err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, %v, want %v", name, got, err, tc.want)
		}
	}
}

// disk is the disk that the workers of one machine share.
type disk struct {
	*fleet
	logs  string
	space *workspace.Workspace
}

func newDisk(t *testing.T) *disk {
	t.Helper()
	r := newRemote(t)
	var c Config
	r.disk(t.TempDir())(&c)
	return &disk{r.fleet, t.TempDir(), c.Workspace}
}

func (d *disk) config(c *Config) {
	c.Workspace, c.LogDir = d.space, d.logs
	c.Retention = Retention{Logs: Bound{Age: 30 * 24 * time.Hour}, Threads: Bound{Age: 7 * 24 * time.Hour}}
	c.Timing.Tidy = time.Hour // when the test says so
}

// age gives all files of a task and its thread that age.
func (d *disk) age(id, thread string, days int) {
	d.Helper()
	files, err := d.space.Files("fake/" + thread)
	if err != nil {
		d.Fatal(err)
	}
	at := time.Now().Add(-time.Duration(days) * 24 * time.Hour)
	log := filepath.Join(d.logs, id+".log")
	appendTo(d.T, log, "said\n")
	for _, name := range []string{log, filepath.Join(filepath.Dir(files), ".thread")} {
		if err := os.Chtimes(name, at, at); err != nil {
			d.Fatal(err)
		}
	}
}

// there reports what is left of a task and its thread.
func (d *disk) there(id, thread string) (log, directory bool) {
	d.Helper()
	_, err := os.Stat(filepath.Join(d.logs, id+".log"))
	list, lerr := d.space.Threads(d.Context())
	if lerr != nil {
		d.Fatal(lerr)
	}
	return err == nil, slices.ContainsFunc(list, func(t workspace.Thread) bool { return t.Name == "fake/"+thread })
}

// tidyAll makes several workers clean up at the same time, and each of them once more.
func tidyAll(ctx context.Context, workers ...*Worker) {
	var all sync.WaitGroup
	for _, w := range workers {
		all.Go(func() { w.janitor.tidy(ctx) })
	}
	all.Wait()
	for _, w := range workers {
		w.janitor.tidy(ctx)
	}
}

// Several workers share a disk. Old files are removed; files of a task that runs, waits or is parked stay, and so do
// other files of its thread.
func TestJanitorLeavesTheLivingAlone(t *testing.T) {
	t.Parallel()
	d := newDisk(t)
	f := d.fleet
	started := make(chan string, 1)
	until := untilStopped(started)
	f.agent.do = func(ctx context.Context, s agent.Spec, h agent.Host) (agent.Result, error) {
		if strings.Contains(s.ID, "runs") && s.Prompt.Text != "first" {
			return until(ctx, s, h)
		}
		return answer("done"), nil
	}
	parked := make(chan struct{})
	f.source.brief = func(task tasks.Task) (tasks.Brief, error) {
		if strings.Contains(task.ID, "parked") {
			defer close(parked)
			return tasks.Brief{}, tasks.Later(time.Hour, "the source is busy")
		}
		return tasks.Brief{Keep: true}, nil
	}
	stop := f.worker(d.config)
	first := f.submit(f.task("runs", "first"))
	f.ending(first)
	old := f.submit(f.task("old", "x"))
	f.ending(old)
	gone := f.submit(f.task("gone", "x"))
	f.ending(gone)
	park := f.submit(f.task("parked", "x"))
	<-parked
	running := f.submit(f.task("runs", "second"))
	<-started
	waiting := f.submit(f.task("runs", "third"))
	for i, id := range []string{first, running, waiting} {
		d.age(id, "runs", 100+i)
	}
	d.age(park, "parked", 100)
	d.age(old, "old", 40)
	d.age(gone, "gone", 40)
	// expired: a week is less than 40 days
	if err := f.redis().Del(t.Context(), "errand:task:"+gone).Err(); err != nil {
		t.Fatal(err)
	}
	fresh := "1700000000000000-fake-fresh"
	d.age(fresh, "fresh", 6)
	appendTo(t, filepath.Join(d.logs, "notes.txt"), "not ours")

	a, b := f.idle(d.config), f.idle(d.config)
	tidyAll(t.Context(), a, b)
	for id, thread := range map[string]string{
		first: "runs", running: "runs", waiting: "runs", park: "parked", fresh: "fresh",
	} {
		if log, directory := d.there(id, thread); !log || !directory {
			t.Errorf("of %s in %s: log %t, directory %t", id, thread, log, directory)
		}
	}
	for id, thread := range map[string]string{old: "old", gone: "gone"} {
		if log, directory := d.there(id, thread); log || directory {
			t.Errorf("of %s in %s: log %t, directory %t are still there", id, thread, log, directory)
		}
	}
	if _, err := os.Stat(filepath.Join(d.logs, "notes.txt")); err != nil {
		t.Error(err)
	}
	stop()
	tidyAll(t.Context(), a, b) // it waits with a checkpoint after it was returned
	if log, directory := d.there(running, "runs"); !log || !directory {
		t.Error("what was handed back is gone")
	}
	f.worker(d.config)
	for _, id := range []string{running, waiting} {
		if _, err := f.desk.Cancel(t.Context(), id, "ann"); err != nil {
			t.Fatal(err)
		}
		f.ending(id)
	}
}

// A thread that is being removed makes its new task wait for a moment.
func TestTaskWaitsForTheJanitor(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.worker()
	w := f.idle()
	var id string
	gone, err := w.janitor.whileIdle(t.Context(), "fake/a", func() (bool, error) {
		id = f.submit(f.task("a", "x"))
		rec, err := f.store.Get(t.Context(), id)
		if err != nil || rec.State != "waiting" {
			t.Errorf("it is %s, %v", rec.State, err)
		}
		again, err := w.janitor.whileIdle(t.Context(), "fake/a", func() (bool, error) {
			t.Error("twice")
			return true, nil
		})
		return !again, err
	})
	if !gone || err != nil {
		t.Errorf("%t, %v", gone, err)
	}
	if e := f.ending(id); e.Kind != tasks.Answered {
		t.Errorf("ending %+v", e)
	}
}

// Commits that were not pushed are saved beside the logs before the clone is removed. A clone that cannot be saved
// stays, however old it is.
func TestWorkOfOldClonesIsSaved(t *testing.T) {
	t.Parallel()
	d := newDisk(t)
	f := d.fleet
	checkout := func(thread string) string {
		t.Helper()
		if _, err := d.space.Enter("fake/" + thread); err != nil {
			t.Fatal(err)
		}
		c, err := d.space.Checkout(t.Context(), workspace.Want{Thread: "fake/" + thread, Repo: "acme/api"})
		if err != nil {
			t.Fatal(err)
		}
		return c.Dir
	}
	clean, dirty, broken := checkout("clean"), checkout("dirty"), checkout("broken")
	appendTo(t, filepath.Join(dirty, "new.txt"), "half done\n")
	if err := os.WriteFile(filepath.Join(broken, ".git", "HEAD"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, thread := range []string{"clean", "dirty", "broken"} {
		d.age("1700000000000000-fake-"+thread, thread, 400)
	}
	w := f.idle(d.config)
	w.janitor.tidy(t.Context())
	for dir, want := range map[string]bool{clean: false, dirty: false, broken: true} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s is there: %t, want %t", dir, err == nil, want)
		}
	}
	saved, err := filepath.Glob(filepath.Join(d.logs, "work-*"))
	if err != nil || len(saved) != 2 || !strings.HasPrefix(filepath.Base(saved[0]), "work-fake-dirty-") ||
		filepath.Ext(saved[0]) != ".bundle" {
		t.Fatalf("saved %v, %v", saved, err)
	}
	data, err := os.ReadFile(saved[1])
	if err != nil || !bytes.Contains(data, []byte("\n+half done\n")) {
		t.Errorf("%q, %v", data, err)
	}
	long := time.Now().Add(-50 * 24 * time.Hour)
	for _, name := range saved {
		if err := os.Chtimes(name, long, long); err != nil {
			t.Fatal(err)
		}
	}
	w.janitor.tidy(t.Context())
	for _, path := range saved {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s is still there", path)
		}
	}
	if _, err := os.Stat(broken); err != nil {
		t.Error("what could not be saved is gone")
	}
}

// A mirror is removed with the last of its clones and not earlier, however old and large it is.
func TestMirrorsGoWithTheirClones(t *testing.T) {
	t.Parallel()
	d := newDisk(t)
	w := d.idle(d.config, func(c *Config) { c.Retention.Threads.Size = 1 })
	var c workspace.Clone
	for _, thread := range []string{"old", "young"} {
		if _, err := d.space.Enter("fake/" + thread); err != nil {
			t.Fatal(err)
		}
		var err error
		if c, err = d.space.Checkout(t.Context(), workspace.Want{
			Thread: "fake/" + thread, Repo: "acme/api",
		}); err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(c.Dir, ".git", "HEAD"), "so that the clone cannot be saved")
	long := time.Now().Add(-100 * 24 * time.Hour)
	if err := os.Chtimes(strings.TrimSuffix(c.Mirror, "git")+"fetched", long, long); err != nil {
		t.Fatal(err)
	}
	w.janitor.tidy(t.Context())
	if _, err := os.Stat(c.Mirror); err != nil {
		t.Errorf("a clone has lost its mirror: %v", err)
	}
	write(filepath.Join(c.Dir, ".git", "HEAD"), "ref: refs/heads/main\n")
	w.janitor.tidy(t.Context())
	w.janitor.tidy(t.Context()) // it may be older than the clone and be removed first
	for _, dir := range []string{c.Dir, c.Mirror} {
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s is still there", dir)
		}
	}
}

// A thread that cannot be moved because a process is in its directory costs a moment, and does not stop the cleaning of
// other threads.
func TestJanitorGoesOn(t *testing.T) {
	t.Parallel()
	d := newDisk(t)
	const held, free = "1700000000000000-fake-held", "1700000000000001-fake-free"
	d.age(held, "held", 100)
	d.age(free, "free", 50)
	list, err := d.space.Threads(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range list {
		if thread.Name != "fake/held" {
			continue
		}
		lock, err := os.Create(thread.Dir + ".lock")
		if err != nil {
			t.Fatal(err)
		}
		defer lock.Close()
		if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
			t.Fatal(err)
		}
	}
	w := d.idle(d.config, func(c *Config) { c.Timing.Discard = 10 * time.Millisecond })
	w.janitor.tidy(t.Context())
	if _, directory := d.there(held, "held"); !directory {
		t.Error("a directory in use was removed")
	}
	if log, directory := d.there(free, "free"); log || directory {
		t.Error("what is free is still there, or its log")
	}
}

// Nothing is removed while the store cannot say what is needed.
func TestNothingGoesWithoutTheStore(t *testing.T) {
	t.Parallel()
	d := newDisk(t)
	f := d.fleet
	id := "1700000000000000-fake-a"
	d.age(id, "a", 100)
	w := f.idle(d.config)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.janitor.tidy(ctx)
	if log, directory := d.there(id, "a"); !log || !directory {
		t.Error("it is gone")
	}
}

// Mirrors are tended, also those that clones borrow from.
func TestMirrorsAreTended(t *testing.T) {
	t.Parallel()
	d := newDisk(t)
	w := d.idle(d.config)
	c, err := d.space.Checkout(t.Context(), workspace.Want{Thread: "fake/a", Repo: "acme/api"})
	if err != nil {
		t.Fatal(err)
	}
	ref := filepath.Join(c.Mirror, "refs", "errand", "published", fmt.Sprintf("%d-%s", time.Now().Unix(), c.Head))
	if err := os.MkdirAll(filepath.Dir(ref), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(ref, []byte(c.Head+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.janitor.tidy(t.Context())
	if _, err := os.Stat(ref); !os.IsNotExist(err) {
		t.Errorf("what the remote has is still named: %v", err)
	}
}
