package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/capacity"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/queue"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/tasks/worker/attempt"
)

// pooled is a fleet whose repository acme/api has a pool.
func pooled(t *testing.T, pool string) *remote {
	r := newRemote(t)
	r.agent.do = nil
	r.inPool(pool)
	return r
}

// inPool gives the repository a pool in what further desks and workers know.
func (r *remote) inPool(pool string) {
	r.policy.Repository = func(string) (rights.Repository, bool) { return rights.Repository{Pool: pool}, true }
	r.policy.Pools = []string{tasks.PoolName(pool)}
	r.desk = desk.New(r.store, r.queue, r.policy, nil)
}

// member starts a worker of a pool with its own CLI and disk.
func (r *remote) member(pool string, a *fakeAgent) (stop func()) {
	r.Helper()
	return r.worker(r.disk(r.TempDir()), with(a), func(c *Config) { c.Pool = pool })
}

// ran checks that the task was answered, at its first attempt, by this agent.
func (r *remote) ran(id string, a *fakeAgent) {
	r.Helper()
	if e, s := r.ending(id), r.status(id); e.Kind != tasks.Answered || s.Attempt != 1 {
		r.Errorf("ending %+v at attempt %d", e, s.Attempt)
	}
	if !slices.ContainsFunc(a.specs(), func(s agent.Spec) bool { return s.ID == id }) {
		r.Errorf("%s ran elsewhere", id)
	}
}

// state returns the state of a pool.
func (r *remote) state(name string) capacity.PoolState {
	r.Helper()
	live, seen := must(r.store.Live(r.Context())), must(r.store.Workers.List(r.Context()))
	for _, p := range desk.FleetOf(r.desk).Pools(live, seen) {
		if p.Name == name {
			return p
		}
	}
	r.Fatalf("there is no pool %s", name)
	return capacity.PoolState{}
}

// A task runs only on a worker of its pool. While there is none, it waits and says so, and other tasks go on.
func TestTaskRunsInItsPool(t *testing.T) {
	t.Parallel()
	r, own, other := pooled(t, "gpu"), &fakeAgent{}, &fakeAgent{}
	r.member("", other)
	r.workers(func(all []store.Worker) bool { return len(all) == 1 && all[0].Pool == "" })
	id := r.submit(r.repoTask("a"))
	for range 5 {
		r.ran(r.submit(r.task("b", "x")), other)
	}
	s := r.status(id)
	if s.Pool != "gpu" || s.State != string(store.Waiting) || s.Attempt != 0 ||
		s.Why != "no worker of pool gpu is running" {
		t.Errorf("without a worker: %+v", s)
	}
	if got := s.Headline(s.Created).Text(nil); got != "Waiting: no worker of pool gpu is running" {
		t.Errorf("headline %s", got)
	}
	r.equal("state", r.state("gpu"), capacity.PoolState{
		Name: "gpu", Waiting: 1, Problem: "no worker of pool gpu is running",
	})
	for pool, want := range map[string]int{"gpu": 1, "default": 5, "arm": 0} {
		l, err := r.desk.List(t.Context(), desk.Filter{Pool: pool})
		if err != nil || len(l.Tasks) != want {
			t.Errorf("%d tasks of pool %s, want %d; %v", len(l.Tasks), pool, want, err)
		}
	}
	r.member("gpu", own)
	r.ran(id, own)
	if len(other.specs()) != 5 || len(own.specs()) != 1 {
		t.Errorf("%d and %d runs", len(other.specs()), len(own.specs()))
	}
	if p := r.state("gpu"); p.Workers != 1 || p.Slots != 4 || p.Waiting != 0 || p.Problem != "" {
		t.Errorf("state %+v", p)
	}
}

// If the pool of a repository changes, the leader moves what waits, also out of a pool that no longer has workers.
func TestPoolChangesWhileATaskWaits(t *testing.T) {
	t.Parallel()
	for name, change := range map[string][2]string{
		"from the default pool": {"", "gpu"}, "to another": {"gpu", "arm"}, "to the default pool": {"gpu", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, own, leader := pooled(t, change[0]), &fakeAgent{}, &fakeAgent{}
			id, second := r.submit(r.repoTask("a")), r.submit(r.repoTask("b"))
			r.inPool(change[1])
			r.member("elsewhere", leader)
			r.member(change[1], own)
			r.ran(id, own)
			r.ran(second, own)
			if n := len(leader.specs()); n > 0 {
				t.Errorf("%d runs elsewhere", n)
			}
			for _, d := range must(r.desk.Depths(t.Context())) {
				if d.Waiting > 0 {
					t.Errorf("left: %+v", d)
				}
			}
		})
	}
}

// A worker that claims a task of another pool gives it back and uses no attempt, and the leader moves it. The task waits
// for seconds only, however many deliveries it had, because full workers make them, too.
func TestWorkerGivesBackATaskOfAnotherPool(t *testing.T) {
	t.Parallel()
	r, said := pooled(t, "gpu"), &lines{}
	id := r.submit(r.repoTask("a"))
	r.inPool("arm")
	for delivery := range 12 {
		if err := must(r.store.Claim(t.Context(), id, delivery, "w")).Return(t.Context(), store.Wait{}); err != nil {
			t.Fatal(err)
		}
	}
	w := r.idle(r.disk(t.TempDir()), logged(said), func(c *Config) { c.Pool = "gpu" })
	if _, err := w.attempts.Process(t.Context(), tasks.Interactive, id, 12); !errors.Is(err, attempt.ErrReturned) {
		t.Fatal(err)
	}
	rec := must(r.store.Get(t.Context(), id))
	if rec.Pool != "gpu" || rec.Why != "it belongs to pool arm" || rec.State != store.Waiting || rec.Attempt != 0 ||
		rec.At.IsZero() || rec.At.After(time.Now().Add(time.Minute)) || len(r.agent.specs()) > 0 {
		t.Errorf("%+v", rec)
	}
	w.recovery.Reconcile(t.Context())
	said.await(t, fmt.Sprintf(`msg="task moved" worker=%s run=%s from=gpu to=arm`, w.id, id))
	moved := must(r.store.Get(t.Context(), id))
	if moved.Pool != "arm" || moved.Delivery != 14 || !moved.At.Equal(rec.At) {
		t.Errorf("%+v", moved)
	}
	if _, err := w.attempts.Process(t.Context(), tasks.Interactive, id, 13); err != nil { // the delivery that moved
		t.Errorf("the earlier delivery: %v", err)
	}
}

// Retries, takeovers and a person's retry stay in the pool.
func TestRetryStaysInThePool(t *testing.T) {
	t.Parallel()
	r, other := pooled(t, "gpu"), &fakeAgent{}
	failed := false
	own := &fakeAgent{do: func(_ context.Context, s agent.Spec, _ agent.Host) (agent.Result, error) {
		if strings.Contains(s.Prompt.Text, "fails first") && !failed {
			failed = true
			return agent.Result{Outcome: agent.Failed, Error: agent.NewError(agent.ClassOverloaded, "529")}, nil
		}
		return answer("done"), nil
	}}
	r.member("", other)
	fails, dead := r.repoTask("a"), r.repoTask("b")
	fails.Prompt = "fails first"
	r.submit(dead)
	if _, err := r.store.Claim(t.Context(), dead.ID, 0, "dead"); err != nil { // and no worker renews it
		t.Fatal(err)
	}
	r.lapse(dead.Thread)
	r.member("gpu", own)
	r.submit(fails)
	for _, id := range []string{fails.ID, dead.ID} {
		if e := r.ending(id); e.Kind != tasks.Answered {
			t.Errorf("ending %+v", e)
		}
	}
	if _, err := r.desk.Retry(t.Context(), dead.ID); err != nil {
		t.Fatal(err)
	}
	for r.closes()[dead.ID] < 2 {
		continue
	}
	if n := len(other.specs()); n > 0 || len(own.specs()) != 4 || !failed {
		t.Errorf("%d runs in another pool, %d in its own", n, len(own.specs()))
	}
}

// A pause of a class holds in all pools, also in one whose queues are new, and ends in all.
func TestPauseInAPool(t *testing.T) {
	t.Parallel()
	r, own := pooled(t, "gpu"), &fakeAgent{}
	if _, err := desk.FleetOf(r.desk).Pause(operator(t), tasks.Interactive); err != nil {
		t.Fatal(err)
	}
	r.member("gpu", own)
	r.workers(func(all []store.Worker) bool { return len(all) == 1 && capacity.Able(all[0]) })
	id := r.submit(r.repoTask("a"))
	background := r.repoTask("b")
	background.Class = tasks.Background
	r.ran(r.submit(background), own)
	if s := r.status(id); s.Attempt != 0 || s.Why != "Ada paused interactive tasks" {
		t.Errorf("%+v", s)
	}
	if _, err := desk.FleetOf(r.desk).Resume(operator(t), tasks.Interactive); err != nil {
		t.Fatal(err)
	}
	r.ran(id, own)

	for range 2 { // asynq knows no queue of a class that never had a task
		if _, err := desk.FleetOf(r.desk).Pause(operator(t), tasks.Maintenance); err != nil {
			t.Fatal(err)
		}
		if _, err := desk.FleetOf(r.desk).Resume(operator(t), tasks.Maintenance); err != nil {
			t.Fatal(err)
		}
	}
	if n := r.rdb.Exists(t.Context(), "asynq:{gpu.maintenance}:paused", "asynq:{maintenance}:paused").Val(); n > 0 {
		t.Errorf("%d queues are still paused", n)
	}
}

// A limit counts the tasks of all pools, and a free place goes to a task in another pool. So does a thread.
func TestLimitAcrossPools(t *testing.T) {
	t.Parallel()
	r, own := pooled(t, "gpu"), &fakeAgent{}
	r.policy.Limits = rights.Limits{User: 1}
	started, finish := r.running()
	r.member("", r.agent)
	first := r.submit(r.task("a", "x"))
	r.next(started)
	r.member("gpu", own)
	r.workers(func(all []store.Worker) bool { return len(all) == 2 })
	limited, behind := r.submit(r.repoTask("b")), r.submit(r.repoTask("a"))
	for must(r.store.Get(t.Context(), limited)).Blocked.Scope == "" {
		continue
	}
	if s := r.status(limited); !strings.Contains(s.Why, "1 of 1 runs busy") {
		t.Errorf("%+v", s)
	}
	close(finish)
	r.ran(first, r.agent)
	r.ran(limited, own)
	r.ran(behind, own)
}

// A worker of the repository's pool says what the CLI offers there.
func TestOfferOfAPool(t *testing.T) {
	t.Parallel()
	r, own, other := pooled(t, "gpu"), &fakeAgent{}, &fakeAgent{offered: errors.New("asked in the wrong pool")}
	r.member("", other)
	r.member("gpu", own)
	r.workers(func(all []store.Worker) bool { return len(all) == 2 })
	if o, err := r.desk.Offer(t.Context(), capacity.Where{Repo: "acme/api"}); err != nil || len(o.Agents) != 1 {
		t.Errorf("%+v, %v", o, err)
	}
}

// Threads learn once that no worker of their pool is running, but not while an autoscaler may be starting one.
func TestThreadsOfAnEmptyPool(t *testing.T) {
	t.Parallel()
	f, source := talking(t, nil)
	source.said = make(chan string, 10)
	r := &remote{fleet: f}
	r.inPool("gpu")
	r.policy.Pools = []string{"default", "gpu"}
	r.submit(r.repoTask("a"))
	r.submit(r.task("b", "x")) // its worker only has no slot
	w := r.idle(func(c *Config) { c.Sources = []tasks.Source{source} })
	w.recovery.Observe = time.Hour
	w.beat(t.Context())
	w.inform(t.Context())
	if n := len(source.said); n > 0 {
		t.Errorf("%d threads were informed at once", n)
	}
	w.recovery.Observe = 1
	for range 3 {
		w.inform(t.Context())
	}
	if n := len(source.said); n != 1 {
		t.Fatalf("informed %d threads", n)
	}
	if text := <-source.said; !strings.HasPrefix(text,
		"No worker of pool gpu is running. This waits and starts by itself") {
		t.Errorf("the thread shows: %s", text)
	}
}

// A worker polls as often as the size of its pool asks for, also while its runs go on.
func TestBusyWorkerSharesThePolls(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	started, finish := f.running()
	f.worker()
	f.submit(f.task("a", "x"))
	f.next(started)
	for i := range 7 {
		w := store.Worker{ID: fmt.Sprint("w", i), Taking: true}
		if _, err := f.store.Workers.Beat(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	await.Until(f, "the worker has new servers beside those of its run", func() bool {
		return len(must(f.asynq.Servers())) > len(tasks.Classes)
	})
	close(finish)
}

// A worker without a free slot keeps no task from other workers, nor lets it lose its turn, and takes no more deliveries
// of its class than it may run of it.
func TestFullWorkerTakesNothing(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	started, finish := f.running()
	defer close(finish)
	f.worker(func(c *Config) { c.Slots, c.Timing.Reconcile = 2, time.Hour }) // the leader orders nothing
	for _, thread := range []string{"a", "b"} {
		f.submit(f.task(thread, "x"))
		f.next(started)
	}
	review := func(i int) string {
		task := f.task(fmt.Sprint("review", i), "x")
		task.Class = tasks.Review
		return f.submit(task)
	}
	err := f.queue.Pause(t.Context(), tasks.Review)
	first, second := review(1), review(2)
	if err = errors.Join(err, f.queue.Resume(t.Context(), tasks.Review)); err != nil {
		t.Fatal(err)
	}
	await.Until(f, "the worker has returned one task to the front", func() bool {
		pending := must(f.asynq.ListPendingTasks(tasks.Review))
		return len(pending) == 2 && pending[0].ID == queue.DeliveryID(first, 1)
	})
	if rec := must(f.store.Get(t.Context(), first)); rec.Why != "all slots are taken" {
		t.Errorf("%+v", rec)
	}
	f.worker()
	for range 2 {
		f.next(started)
	}
	for _, id := range []string{first, second} {
		if rec := must(f.store.Get(t.Context(), id)); rec.State != store.Running {
			t.Errorf("task %s: %+v", id, rec)
		}
	}
	if rec := must(f.store.Get(t.Context(), second)); rec.Delivery != 0 {
		t.Errorf("%d deliveries of a task for which the full worker had no place", rec.Delivery+1)
	}
}
