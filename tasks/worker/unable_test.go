package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/capacity"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/internal/format"
)

var noCLI = agent.NewError(agent.ClassCLIMissing, "/opt/claude is not there")

// lookOften makes a worker notice quickly that its CLI has changed.
func lookOften(c *Config) { c.Timing.Health = 300 * time.Millisecond }

// with gives a worker its own CLI.
func with(a *fakeAgent) func(*Config) { return func(c *Config) { c.Runner = a } }

// Beside a healthy worker, a worker that cannot run tasks takes none and fails none: each task runs once, at its first
// attempt.
func TestUnableWorkerTakesNoTasks(t *testing.T) {
	t.Parallel()
	f, said := newFleet(t), &lines{}
	broken := &fakeAgent{health: noCLI}
	f.worker(with(broken), logged(said))
	said.await(t, `takes none" problem="/opt/claude is not there" remedy="`)
	f.workers(func(all []store.Worker) bool { return len(all) == 1 && !capacity.Able(all[0]) })
	f.worker()
	var ids []string
	for i := range 16 {
		ids = append(ids, f.submit(f.task(string(rune('a'+i)), "x")))
	}
	for _, id := range ids {
		if e := f.ending(id); e.Kind != tasks.Answered {
			t.Errorf("ending = %+v", e)
		}
		if s, err := f.desk.Status(t.Context(), id); err != nil || s.Attempt != 1 {
			t.Errorf("attempt %d, %v", s.Attempt, err)
		}
	}
	if n := len(broken.specs()); n != 0 {
		t.Errorf("the worker that cannot was asked for %d runs", n)
	}
}

// A worker takes no tasks while its Redis would drop some without a word, and takes them again when it no longer does.
func TestWorkerLeavesARedisThatEvicts(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.worker(lookOften)
	able := func(all []store.Worker) bool { return len(all) == 1 && capacity.Able(all[0]) }
	f.workers(able)
	set := func(policy string) {
		t.Helper()
		if err := f.rdb.ConfigSet(t.Context(), "maxmemory-policy", policy).Err(); err != nil {
			t.Fatal(err)
		}
	}
	set("allkeys-lru") // without maxmemory nothing is dropped
	if e := f.ending(f.submit(f.task("a", "x"))); e.Kind != tasks.Answered {
		t.Errorf("without maxmemory: %+v", e)
	}
	if err := f.rdb.ConfigSet(t.Context(), "maxmemory", "1gb").Err(); err != nil {
		t.Fatal(err)
	}
	f.workers(func(all []store.Worker) bool {
		return len(all) == 1 && strings.Contains(string(all[0].Health), "Redis runs with maxmemory-policy allkeys-lru")
	})
	id := f.submit(f.task("b", "y"))
	set("noeviction")
	f.workers(able)
	if e := f.ending(id); e.Kind != tasks.Answered {
		t.Errorf("afterwards: %+v", e)
	}
}

// If no worker can run tasks, they wait, and their threads get the reason once and without a path. Later they start by
// themselves.
func TestTasksWaitForAnAbleWorker(t *testing.T) {
	t.Parallel()
	f, source := talking(t, func(context.Context, func(string, string) string) string { return "done" })
	speaks := func(c *Config) { c.Sources = []tasks.Source{source} }
	id := f.submit(f.task("a", "x"))
	if s, err := f.desk.Status(t.Context(), id); err != nil || s.Why != "no worker is alive" {
		t.Errorf("before there is a worker it waits for %q, %v", s.Why, err)
	}
	f.agent.breaks(noCLI)
	f.worker(lookOften, speaks)
	f.worker(lookOften, speaks)
	text := <-source.said
	const why = "o worker can run tasks: the worker has no Claude Code CLI"
	if !strings.HasPrefix(text, "N"+why+".") ||
		strings.Contains(text, "/opt") {
		t.Errorf("the thread shows: %s", text)
	}
	s, err := f.desk.Status(t.Context(), id)
	if err != nil || s.State != string(store.Waiting) || s.Attempt != 0 || !strings.HasPrefix(s.Why, "n"+why) {
		t.Errorf("status %+v, %v", s, err)
	}
	if l, err := f.desk.List(t.Context(), desk.Filter{}); err != nil || len(l.Tasks) != 1 || l.Tasks[0].Why != s.Why {
		t.Errorf("list %+v, %v", l, err)
	}
	f.agent.breaks(nil)
	if e := f.ending(id); e.Kind != tasks.Answered || e.Result.Text != "done" {
		t.Errorf("ending = %+v", e)
	}
	if s, err := f.desk.Status(t.Context(), id); err != nil || s.Attempt != 1 || s.Why != "" {
		t.Errorf("status %+v, %v", s, err)
	}
	select {
	case again := <-source.said:
		t.Errorf("posted again: %s", again)
	default:
	}
}

// maxInformed is how many threads one pass informs.
const maxInformed = 8

// inform makes a pass of the leader's and waits for what it posts. On a busy machine a heartbeat from before the tasks
// were submitted no longer counts.
func (w *Worker) inform(ctx context.Context) {
	w.beat(ctx)
	w.recovery.Reconcile(ctx)
	w.waits.Wait()
}

// If no worker can run tasks, the leader informs the threads, a few at a time and each only once.
func TestLeaderTellsThatNoWorkerCan(t *testing.T) {
	t.Parallel()
	f, source := talking(t, nil)
	source.said = make(chan string, 100)
	broken := func() *Worker {
		w := f.idle(with(&fakeAgent{health: noCLI}), func(c *Config) { c.Sources = []tasks.Source{source} })
		w.recovery.Observe, w.recovery.Every = 1, time.Minute
		w.recovery.Leader = w.cfg.Store.Leader("recovery", time.Minute)
		w.beat(t.Context())
		return w
	}
	one, other := broken(), broken()
	const threads = 2*maxInformed + 5
	for i := range 105 { // the last thread has many
		f.submit(f.task(fmt.Sprint(min(i, threads-1)), "x"))
	}
	informed := 0
	for range 5 {
		one.inform(t.Context())
		other.inform(t.Context())
		if n := len(source.said); n > maxInformed {
			t.Errorf("a pass informed %d threads, want at most %d", n, maxInformed)
		}
		for len(source.said) > 0 {
			<-source.said
			informed++
		}
	}
	if informed != threads {
		t.Errorf("informed %d times, want each of %d threads once", informed, threads)
	}
	one.recovery.Resign(t.Context())
	for range 5 {
		other.inform(t.Context())
	}
	if n := len(source.said); n > 0 {
		t.Errorf("the next leader informed %d threads again", n)
	}
}

// Threads are informed unless a worker takes tasks and can run them, or one that drains may be replaced soon. The
// leader's own health decides as little as that of others.
func TestWhoCountsAsAble(t *testing.T) {
	t.Parallel()
	broken := with(&fakeAgent{health: noCLI})
	for name, test := range map[string]struct {
		leader, other []func(*Config)
		bring         func(t *testing.T, leader *Worker)
		want          string
	}{
		"the leader can": {other: []func(*Config){broken}},
		"the leader is cordoned": {
			other: []func(*Config){broken},
			bring: func(t *testing.T, leader *Worker) {
				t.Helper()
				if err := leader.cfg.Store.Cordoned.Add(t.Context(), leader.id, store.Halt{By: "Ada"}); err != nil {
					t.Fatal(err)
				}
			},
			want: "No worker can run tasks: the worker has no Claude Code CLI.",
		},
		"the leader drains": {
			other: []func(*Config){broken},
			bring: func(_ *testing.T, leader *Worker) { leader.drain() },
		},
		"the other one has another source": {
			leader: []func(*Config){broken},
			other:  []func(*Config){func(c *Config) { c.Sources = []tasks.Source{renamed{c.Sources[0]}} }},
			want:   "No worker is set up for fake.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, source := talking(t, nil)
			speaks := func(c *Config) { c.Sources = []tasks.Source{source} }
			leader := f.idle(append([]func(*Config){speaks}, test.leader...)...)
			other := f.idle(append([]func(*Config){speaks}, test.other...)...)
			if test.bring != nil {
				test.bring(t, leader)
			}
			f.submit(f.task("a", "x"))
			leader.recovery.Observe, leader.recovery.Every = 1, time.Minute
			leader.beat(t.Context())
			other.beat(t.Context())
			leader.inform(t.Context())
			var said string
			if len(source.said) > 0 {
				said = <-source.said
			}
			if !strings.HasPrefix(said, test.want) || (said == "") != (test.want == "") {
				t.Errorf("said %q, want %q", said, test.want)
			}
		})
	}
}

// A new leader does not count the threads that another one has informed, or that cannot be informed.
func TestNewLeaderInformsNewThreads(t *testing.T) {
	t.Parallel()
	f, source := talking(t, nil)
	source.said = make(chan string, 100)
	leader := func() *Worker {
		w := f.idle(with(&fakeAgent{health: noCLI}), func(c *Config) { c.Sources = []tasks.Source{source} })
		w.recovery.Observe, w.recovery.Every = 1, time.Minute
		w.beat(t.Context())
		return w
	}
	one, other := leader(), leader()
	for i := range 3 * maxInformed {
		f.submit(f.task(fmt.Sprint(i), "x"))
	}
	for range 3 {
		one.inform(t.Context())
	}
	told := len(source.said)
	one.recovery.Resign(t.Context())
	f.submit(f.task("new", "x"))
	other.inform(t.Context())
	if n := len(source.said); told != 3*maxInformed || n != told+1 {
		t.Errorf("informed %d threads, and the next leader %d", told, n-told)
	}
}

// A thread whose message could not be posted is informed by a later pass.
func TestFailedMessageIsPostedLater(t *testing.T) {
	t.Parallel()
	f, source := talking(t, nil)
	w := f.idle(with(&fakeAgent{health: noCLI}), func(c *Config) { c.Sources = []tasks.Source{source} })
	w.recovery.Observe, w.recovery.Every = 1, time.Minute
	w.beat(t.Context())
	f.submit(f.task("a", "x"))
	source.hush = errors.New("limited")
	w.inform(t.Context())
	source.hush = nil
	for range 2 {
		w.inform(t.Context())
	}
	if n := len(source.said); n != 1 {
		t.Errorf("informed %d times, want once", n)
	}
}

// A repaired fleet informs nobody, although a pass had not reached all threads. The next outage begins with them.
func TestOutageIsOverInTheMiddle(t *testing.T) {
	t.Parallel()
	f, source := talking(t, nil)
	source.said = make(chan string, 100)
	broken := &fakeAgent{health: noCLI}
	w := f.idle(with(broken), func(c *Config) { c.Sources = []tasks.Source{source} })
	w.recovery.Observe, w.recovery.Every = 1, time.Minute
	w.beat(t.Context())
	for i := range maxInformed + 5 {
		f.submit(f.task(fmt.Sprint(i), "x"))
	}
	w.inform(t.Context())
	broken.breaks(nil)
	w.health.Check(t.Context())
	w.beat(t.Context())
	w.inform(t.Context())
	if n := len(source.said); n != maxInformed {
		t.Errorf("informed %d threads, want %d", n, maxInformed)
	}
	broken.breaks(noCLI)
	w.health.Check(t.Context())
	w.beat(t.Context())
	for range 3 {
		w.inform(t.Context())
	}
	if n := len(source.said); n != maxInformed+5 {
		t.Errorf("informed %d threads in both outages, want each once: %d", n, maxInformed+5)
	}
}

// Runs continue when the CLI breaks, and no new one starts. A repaired worker takes tasks again, although the earlier
// run is not over.
func TestWorkerStopsAndResumesTaking(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	started, finish := make(chan string, 2), make(chan struct{})
	f.agent.do = func(_ context.Context, s agent.Spec, _ agent.Host) (agent.Result, error) {
		if started <- s.ID; s.Prompt.Text == "slow" {
			<-finish
		}
		return answer("done"), nil
	}
	f.worker(lookOften)
	slow := f.submit(f.task("a", "slow"))
	<-started
	f.agent.breaks(noCLI)
	f.workers(func(all []store.Worker) bool { return !capacity.Able(all[0]) && all[0].Running == 1 })
	quick := f.submit(f.task("b", "quick"))
	f.workers(func(all []store.Worker) bool { return !capacity.Able(all[0]) && all[0].Running == 1 }) // another beat
	if n := len(f.agent.specs()); n != 1 {
		t.Errorf("%d runs started, want 1", n)
	}
	f.agent.breaks(nil)
	if e := f.ending(quick); e.Kind != tasks.Answered {
		t.Errorf("ending = %+v", e)
	}
	close(finish)
	if e := f.ending(slow); e.Kind != tasks.Answered {
		t.Errorf("ending = %+v", e)
	}
}

// A CLI that breaks after the worker has checked it fails no task either: another worker runs it.
func TestRunThatFindsTheCLIBroken(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]func() (agent.Result, error){
		"before the run": func() (agent.Result, error) { return agent.Result{}, noCLI },
		"in the run": func() (agent.Result, error) {
			return agent.Result{Outcome: agent.Failed, Error: noCLI}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			other := &fakeAgent{health: noCLI}
			var once sync.Once
			f.agent.do = func(context.Context, agent.Spec, agent.Host) (agent.Result, error) {
				once.Do(func() { f.agent.breaks(noCLI); other.breaks(nil) })
				return failure()
			}
			f.worker()
			f.worker(with(other), lookOften)
			id := f.submit(f.task("a", "x"))
			if e := f.ending(id); e.Kind != tasks.Answered {
				t.Errorf("ending = %+v", e)
			}
			if s, err := f.desk.Status(t.Context(), id); err != nil || s.Attempt != 1 || len(f.agent.specs()) != 1 {
				t.Errorf("attempt %d, %d runs, %v", s.Attempt, len(f.agent.specs()), err)
			}
			f.stopAll()
			if n := len(f.source.waited); n != 0 {
				t.Errorf("reported %d times that it waits", n)
			}
		})
	}
}

// A CLI that is replaced by one that cannot be used runs no task, however recent the last check is.
func TestReplacedCLIIsChecked(t *testing.T) {
	t.Parallel()
	for name, replace := range map[string]func(path string) error{
		"another file": func(path string) error {
			if err := os.WriteFile(path+".new", []byte("old"), 0o600); err != nil {
				return err
			}
			return os.Rename(path+".new", path)
		},
		"written": func(path string) error { return os.WriteFile(path, []byte("older than that"), 0o600) },
		"gone":    os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			f.agent.path = filepath.Join(t.TempDir(), "claude")
			if err := os.WriteFile(f.agent.path, []byte("new"), 0o600); err != nil {
				t.Fatal(err)
			}
			w := f.idle()
			w.Examine(t.Context())
			if err := w.health.Problem(t.Context()); err != nil {
				t.Fatal(err)
			}
			f.agent.breaks(noCLI)
			if err := w.health.Problem(t.Context()); err != nil {
				t.Errorf("the same file is checked at each start: %v", err)
			}
			if err := replace(f.agent.path); err != nil {
				t.Fatal(err)
			}
			if err := w.health.Problem(t.Context()); err == nil {
				t.Error("a run would start")
			}
		})
	}
}

func TestUnable(t *testing.T) {
	t.Parallel()
	good := store.Worker{Host: "a", Health: json.RawMessage(`{"ok":true}`)}
	bad := store.Worker{Host: "b", Health: format.JSON(agent.Health{
		Problem: "no /opt/claude", Remedy: "run npm ci", Sentence: "It has no CLI.",
	})}
	leaving := store.Worker{Host: "c", Draining: true}
	for name, c := range map[string]struct {
		seen []store.Worker
		want [3]string
	}{
		"none": {nil, [3]string{
			"no worker is alive", "start one, with the same REDIS_URL", "no worker is alive",
		}},
		"one is able":  {[]store.Worker{bad, good, leaving}, [3]string{}},
		"says nothing": {[]store.Worker{{}}, [3]string{}},
		"unable": {
			[]store.Worker{leaving, bad},
			[3]string{
				"no worker can run tasks: no /opt/claude (b)", "run npm ci", "no worker can run tasks: it has no CLI",
			},
		},
		"leaving": {[]store.Worker{leaving}, [3]string{"all workers are shutting down", "", "no worker can run tasks"}},
		"unreadable": {
			[]store.Worker{{Host: "d", Health: json.RawMessage(`[]`)}},
			[3]string{
				"the CLI state of worker d cannot be read", "run the same version of errand everywhere",
				"no worker can run tasks",
			},
		},
	} {
		what, remedy := capacity.Unable(c.seen)
		if diff := cmp.Diff(c.want, [3]string{what, remedy, capacity.WhyNoWorker(c.seen)}); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// workers waits until the live workers report the wanted states, after at least one further heartbeat.
func (f *fleet) workers(want func([]store.Worker) bool) {
	f.Helper()
	ctx := await.Context(f)
	began, tick := time.Now(), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for {
		all, err := f.store.Workers.List(ctx)
		if err != nil {
			f.Fatalf("%v; workers are %+v", err, all)
		}
		if len(all) > 0 && all[0].Seen.After(began) && want(all) {
			return
		}
		<-tick.C
	}
}

// The least free space with which a worker takes tasks.
const (
	leastBytes = 256 << 20
	leastFiles = 1000
)

// A worker whose disk has no room takes no tasks, says so, and begins again when there is twice the room.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	var bytes, files atomic.Uint64
	bytes.Store(leastBytes - 1)
	files.Store(1 << 20)
	data := t.TempDir()
	f.worker(lookOften, func(c *Config) {
		c.Disks = []string{data + "/new", data}
		c.Statfs = func(dir string, into *unix.Statfs_t) error {
			if dir != data {
				return unix.ENOSYS
			}
			into.Bsize, into.Bavail, into.Files, into.Ffree = 1, bytes.Load(), 1<<21, files.Load()
			return nil
		}
	})
	says := func(want string) {
		t.Helper()
		f.workers(func(all []store.Worker) bool {
			return len(all) == 1 && strings.Contains(string(all[0].Health), want)
		})
	}
	says("the disk of " + data + " has 255 MiB left")
	id := f.submit(f.task("a", "x"))
	if why := f.status(id).Why; why != "no worker can run tasks: the worker's disk is full" {
		t.Errorf("the task waits for %q", why)
	}
	bytes.Store(leastBytes)
	files.Store(leastFiles)
	says("the disk of " + data + " has 256 MiB left")
	bytes.Store(2 * leastBytes)
	says("the disk of " + data + " has room for 1000 files only")
	files.Store(2 * leastFiles)
	if e := f.ending(id); e.Kind != tasks.Answered {
		t.Errorf("ending = %+v", e)
	}
	if s := f.status(id); s.Attempt != 1 {
		t.Errorf("%d attempts", s.Attempt)
	}
}

// What fails while the disk is full does not count as an attempt.
func TestDiskFillsUp(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	var full atomic.Bool
	failed := make(chan struct{}, 1)
	f.source.brief = func(tasks.Task) (tasks.Brief, error) {
		if full.CompareAndSwap(false, true) {
			failed <- struct{}{}
			return tasks.Brief{}, unix.ENOSPC
		}
		return tasks.Brief{Keep: true}, nil
	}
	var room atomic.Bool
	f.worker(lookOften, func(c *Config) {
		c.Disks = []string{t.TempDir()}
		c.Statfs = func(_ string, into *unix.Statfs_t) error {
			if into.Bsize = 1 << 30; !full.Load() || room.Load() {
				into.Bavail = 1
			}
			return nil
		}
	})
	id := f.submit(f.task("a", "x"))
	<-failed
	f.workers(func(all []store.Worker) bool { return len(all) == 1 && !capacity.Able(all[0]) })
	room.Store(true)
	if e, s := f.ending(id), f.status(id); e.Kind != tasks.Answered || s.Attempt != 1 {
		t.Errorf("ending %+v at attempt %d", e, s.Attempt)
	}
}

// renamed is a source with another name.
type renamed struct{ tasks.Source }

func (renamed) Name() string { return "other" }

// A worker that is not set up for a task's source leaves it to another one, without an attempt, and the task says so
// while there is none.
func TestWorkerWithoutTheSource(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.worker(func(c *Config) { c.Sources = []tasks.Source{renamed{f.source}} })
	f.workers(func(all []store.Worker) bool { return len(all) == 1 && slices.Equal(all[0].Sources, []string{"other"}) })
	id := f.submit(f.task("a", "x"))
	if why := f.status(id).Why; why != "no worker is set up for fake" {
		t.Errorf("the task waits for %q", why)
	}
	live := must(f.store.Live(t.Context()))
	if got := capacity.Unserved(live, must(f.store.Workers.List(t.Context()))); got["fake"] != 1 || len(got) != 1 {
		t.Errorf("unserved: %v", got)
	}
	f.waits(id)
	f.worker()
	if e, s := f.ending(id), f.status(id); e.Kind != tasks.Answered || s.Attempt != 1 {
		t.Errorf("ending %+v at attempt %d", e, s.Attempt)
	}
	if got := capacity.Unserved(live, must(f.store.Workers.List(t.Context()))); len(got) > 0 {
		t.Errorf("unserved: %v", got)
	}
}
