package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/errand-fleet/errand/e2e/chaos/script"
	"github.com/errand-fleet/errand/internal/fake/container"
	"github.com/errand-fleet/errand/internal/fake/redissentinel"
)

// How long a program may take to end cleanly: the worker's own budget, and some reserve.
const (
	workerStop = 75 * time.Second
	doorStop   = 30 * time.Second
)

// consoleToken is the token of the front door's API.
const consoleToken = "chaos-console-token-for-loopback"

// fleet is a front door, workers and Redis, as in production.
type fleet struct {
	redis    database
	replicas int // that confirm writes
	door     *process
	base     string // of the front door, without a slash at the end
	workers  []*process

	mu   sync.Mutex
	down map[*process]bool // workers with an active fault: one fault at a time
}

// newFleet starts everything and returns when the front door responds. With an error it also returns what it has
// started.
func newFleet(ctx context.Context, set settings, w *world) (*fleet, error) {
	f := &fleet{down: map[*process]bool{}, replicas: set.replicas}
	if err := f.store(ctx, set, filepath.Join(w.dir, "redis")); err != nil {
		return f, err
	}
	far, others := f.redis.urls()
	addr, err := freeAddr()
	if err != nil {
		return f, err
	}
	f.base = "http://" + addr
	env := append(w.environment(), fmt.Sprintf("ERRAND_REDIS_REPLICAS=%d", set.replicas),
		"ERRAND_METRICS_TOKEN="+metricsToken)
	if set.drill {
		env = append(env, fmt.Sprintf("ERRAND_CONCURRENCY=%d", drillSlots), "ERRAND_RUN_LIMIT=2h", "ERRAND_IDLE_LIMIT=2h")
	}
	f.door = &process{
		name: "frontdoor", dirs: set.versions(0), file: "enqueue", args: []string{"serve"}, logs: w.dir, addr: addr,
		env: append(slices.Clip(env), "REDIS_URL="+others, "ERRAND_HTTP_ADDR="+addr,
			"ERRAND_CONSOLE_TOKEN="+consoleToken),
	}
	for i := range set.workers {
		way := others
		if i == set.workers-1 {
			way = far
		}
		if err := f.add(set, w, append(slices.Clip(env), "REDIS_URL="+way)); err != nil {
			return f, err
		}
	}
	if set.other == "" { // a release before 0.1.0 does not start without the other's secrets
		f.door.env = append(f.door.env, "ANTHROPIC_API_KEY=")
		for _, p := range f.workers {
			p.env = append(p.env, "SLACK_SIGNING_SECRET=", "GITHUB_WEBHOOK_SECRET=")
		}
	}
	for _, p := range append([]*process{f.door}, f.workers...) {
		if err := p.start(); err != nil {
			return f, err
		}
	}
	return f, f.ready(ctx)
}

// add adds a worker, which is not started yet.
func (f *fleet) add(set settings, w *world, env []string) error {
	i := len(f.workers)
	listens, err := freeAddr()
	if err != nil {
		return err
	}
	p := &process{
		name: fmt.Sprintf("worker-%d", i+1), dirs: set.versions(i), file: "worker", logs: w.dir, addr: listens,
		pool: poolName(i % set.pools),
		env:  append(env, "ERRAND_WORKER_ADDR="+listens, "ERRAND_POOL="+poolName(i%set.pools)),
	}
	if set.once {
		if p.in, err = container.New(w.dir, p.name, filepath.Join(w.dir, script.ProcDir)); err != nil {
			return err
		}
		p.args, p.env = p.in.Args(), append(p.env, p.in.Env()...)
	}
	f.workers = append(f.workers, p)
	return nil
}

// versions returns the directories of the n-th program's versions, in the order of its starts.
func (s settings) versions(n int) []string {
	switch {
	case s.other == "":
		return []string{s.bin}
	case n%2 == 0:
		return []string{s.other, s.bin}
	default:
		return []string{s.bin, s.other}
	}
}

// store starts Redis, with its data below dir.
func (f *fleet) store(ctx context.Context, set settings, dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("start redis: %w", err)
	}
	if set.sentinel {
		r, err := redissentinel.Start(ctx, dir)
		f.redis = replicated{r}
		return err
	}
	d, err := newSingle(dir)
	if d != nil {
		f.redis = d
	}
	return err
}

// freeAddr returns a free loopback address.
func freeAddr() (string, error) {
	ln, err := listen()
	if err != nil {
		return "", err
	}
	defer ln.Close()
	return ln.Addr().String(), nil
}

// ready waits for the front door.
func (f *fleet) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.base+"/readyz", nil)
		if err != nil {
			return fmt.Errorf("ask the front door: %w", err)
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		pause(ctx, 50*time.Millisecond)
	}
	return errors.New("the front door does not become ready; its log says why")
}

// borrow takes a running worker for a fault, if another working one remains in its pool; otherwise nil. wanted says
// which are worth breaking, by pid.
func (f *fleet) borrow(pick uint64, wanted func(pid int) bool) *process {
	f.mu.Lock()
	defer f.mu.Unlock()
	var worth []*process
	up := map[string]int{} // by pool
	for _, p := range f.workers {
		pid := p.pid()
		if f.down[p] || pid == 0 {
			continue
		}
		up[p.pool]++
		if wanted(pid) {
			worth = append(worth, p)
		}
	}
	worth = slices.DeleteFunc(worth, func(p *process) bool { return up[p.pool] < 2 })
	if len(worth) == 0 {
		return nil
	}
	p := worth[pick%uint64(len(worth))]
	f.down[p] = true
	return p
}

func (f *fleet) giveBack(p *process) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.down, p)
}

// bounce ends a program and starts it again after a while.
func bounce(ctx context.Context, p *process, sig syscall.Signal, patience, after time.Duration) error {
	if err := p.end(sig, patience); err != nil {
		return err
	}
	pause(ctx, after)
	return p.start()
}

// stop ends the front door and all workers in order.
func (f *fleet) stop() error {
	for _, p := range f.workers {
		p.retire()
	}
	var errs []error
	if f.door != nil {
		errs = append(errs, ignoreDead(f.door.end(syscall.SIGTERM, doorStop)))
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, p := range f.workers {
		all.Go(func() {
			err := ignoreDead(p.end(syscall.SIGTERM, workerStop))
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func ignoreDead(err error) error {
	if errors.Is(err, errDead) {
		return nil
	}
	return err
}

// close ends what is left, Redis last.
func (f *fleet) close() {
	for _, p := range f.workers {
		p.retire()
	}
	for _, p := range append(f.workers, f.door) {
		if p != nil {
			_ = p.end(syscall.SIGKILL, time.Minute)
		}
	}
	if f.redis != nil {
		f.redis.stop()
	}
}
