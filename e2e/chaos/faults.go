package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/errand-fleet/errand/e2e/chaos/script"
)

// Bounds of one fault.
const (
	findFor    = 15 * time.Second // to find a target
	afterwards = 10 * time.Second // after the plan, for faults that waited for others
)

// window is a stretch of time.
type window struct{ from, to time.Time }

func (w window) touches(from, to time.Time) bool { return w.from.Before(to) && from.Before(w.to) }

// noticed reports whether a CLI from before the loss of Redis' data may still be alive at a time: its worker notices
// the loss within the time of a claim.
func (w window) noticed(l life, at time.Time) bool {
	return l.start.Before(w.to) && at.After(w.to) && at.Before(w.to.Add(20*time.Second))
}

// death is a worker that was killed.
type death struct {
	worker int // pid
	at     time.Time
}

// injury is a fault of a worker, from its beginning until the worker works again.
type injury struct {
	worker int // pid
	window
}

// saboteur injects the faults.
type saboteur struct {
	w     *world
	f     *fleet
	until time.Time // no new faults after this

	door, cable, disk, store, clock, objects sync.Mutex // one fault at a time for each

	mu      sync.Mutex
	hit     map[identity]bool // CLIs whose run already had a fault
	done    map[kind]int
	deaths  []death
	outage  []window             // of Redis, for all
	emptied []window             // around the times when Redis lost all its data
	gone    map[string]time.Time // the tasks that it had then and whose answer was nowhere else
	unread  []string             // see unreadEvents
	cut     []window             // of the last worker's link
	hurt    []injury
	errs    []error
}

func newSaboteur(w *world, f *fleet) *saboteur {
	return &saboteur{w: w, f: f, done: map[kind]int{}, hit: map[identity]bool{}, gone: map[string]time.Time{}}
}

// play injects all faults at their times and returns when all have ended.
func (s *saboteur) play(ctx context.Context, faults []fault, span time.Duration) {
	begun := time.Now()
	s.until = begun.Add(span + afterwards)
	var all sync.WaitGroup
	for _, f := range faults {
		pause(ctx, f.at-time.Since(begun))
		if ctx.Err() != nil {
			break
		}
		all.Go(func() { s.do(ctx, f) })
	}
	all.Wait()
}

// did counts a fault, or notes why it could not be injected.
func (s *saboteur) did(k kind, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.w.note("fault: %s: %v", k, err)
		s.errs = append(s.errs, err)
		return
	}
	s.done[k]++
}

func (s *saboteur) late() bool { return time.Now().After(s.until) }

func (s *saboteur) do(ctx context.Context, f fault) {
	switch f.kind {
	case killWorker:
		s.worker(ctx, f, syscall.SIGKILL)
	case termWorker:
		s.worker(ctx, f, syscall.SIGTERM)
	case freezeWorker:
		s.worker(ctx, f, syscall.SIGSTOP)
	case killKeeper, killCLI:
		s.run(ctx, f)
	case restartRedis, killRedis, freezeRedis, fullRedis, lockedRedis, emptyRedis:
		s.redis(ctx, f)
	case clockJumps:
		s.alone(&s.clock, f, func() error { return s.jump(ctx, f) })
	case partition:
		s.alone(&s.cable, f, func() error { return s.cutOff(ctx, f.lasts) })
	case fullDisk:
		s.alone(&s.disk, f, func() error { return s.w.disk.fill(ctx, f.lasts) })
	case noInodes:
		s.alone(&s.disk, f, func() error { return s.w.disk.crowd(ctx, f.lasts) })
	case slowDisk:
		s.alone(&s.disk, f, func() error { return s.w.disk.stall(ctx, f.lasts) })
	case objectsAway:
		s.alone(&s.objects, f, func() error { s.w.sky[objects].storm(ctx, f.manner, f.lasts); return nil })
	case restartDoor:
		s.alone(&s.door, f, func() error { return bounce(ctx, s.f.door, syscall.SIGTERM, doorStop, f.lasts) })
	case killDoor:
		s.alone(&s.door, f, func() error { return bounce(ctx, s.f.door, syscall.SIGKILL, doorStop, f.lasts) })
	case slackFails:
		s.w.sky[inSlack].brew(f.manner)
	case githubFails:
		s.w.sky[inGitHub].brew(f.manner)
	case modelFails:
		s.w.sky[model].brew(f.manner)
	}
}

// alone injects a fault while holding its lock.
func (s *saboteur) alone(mu *sync.Mutex, f fault, do func() error) {
	mu.Lock()
	defer mu.Unlock()
	if s.late() {
		return
	}
	s.w.note("fault: %s for %s", f.kind, f.lasts)
	s.did(f.kind, do())
}

// find waits for a target.
func find[T any](ctx context.Context, look func() (T, bool)) (T, bool) {
	ctx, cancel := context.WithTimeout(ctx, findFor)
	defer cancel()
	for {
		if found, ok := look(); ok || ctx.Err() != nil {
			return found, ok
		}
		pause(ctx, 100*time.Millisecond)
	}
}

// worker ends a busy worker while another one runs, and starts it again after a while; or it stops and continues the
// worker.
func (s *saboteur) worker(ctx context.Context, f fault, sig syscall.Signal) {
	p, ok := find(ctx, func() (*process, bool) {
		up := s.w.witness.present(script.CLI)
		p := s.f.borrow(f.pick, func(pid int) bool {
			return slices.ContainsFunc(up, func(l life) bool { return l.worker == pid && len(l.taken) > 0 })
		})
		return p, p != nil
	})
	if !ok {
		return
	}
	defer s.f.giveBack(p)
	if s.late() {
		return
	}
	pid, from := p.pid(), time.Now()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.hurt = append(s.hurt, injury{pid, window{from, time.Now()}})
	}()
	if sig == syscall.SIGKILL {
		s.mu.Lock()
		s.deaths = append(s.deaths, death{pid, from})
		s.mu.Unlock()
	}
	s.w.note("fault: %s: %s, pid %d, for %s", f.kind, p.name, pid, f.lasts)
	if who, ok := look(pid); ok && sig == syscall.SIGSTOP {
		s.did(f.kind, freeze(ctx, who.identity, f.lasts))
		return
	}
	s.did(f.kind, bounce(ctx, p, sig, workerStop, f.lasts))
}

// freeze stops a process for a while.
func freeze(ctx context.Context, i identity, lasts time.Duration) error {
	if err := i.kill(syscall.SIGSTOP); err != nil {
		return err
	}
	pause(ctx, lasts)
	return i.kill(syscall.SIGCONT)
}

// run kills the CLI of a run or its keeper, if the harness started their worker.
func (s *saboteur) run(ctx context.Context, f fault) {
	l, ok := find(ctx, func() (life, bool) {
		up := s.w.witness.present(script.CLI)
		s.mu.Lock()
		defer s.mu.Unlock()
		up = slices.DeleteFunc(up, func(l life) bool { return len(l.taken) == 0 || s.hit[l.identity] || !s.ours(l) })
		if len(up) == 0 {
			return life{}, false
		}
		l := up[f.pick%uint64(len(up))]
		s.hit[l.identity] = true
		return l, true
	})
	if !ok || s.late() {
		return
	}
	victim := l.identity
	if f.kind == killKeeper {
		victim = l.keeper
	}
	s.w.note("fault: %s: pid %d of run %s", f.kind, victim.pid, l.run)
	if err := victim.kill(syscall.SIGKILL); err != nil {
		s.w.note("fault: %s: %v", f.kind, err) // the process had already ended
		return
	}
	s.did(f.kind, nil)
}

// ours reports whether a CLI belongs to a worker that the harness started.
func (s *saboteur) ours(l life) bool {
	name, err := os.ReadFile("/proc/" + itoa(l.keeper.pid) + "/cmdline")
	if err != nil || !strings.HasPrefix(string(name), "errand-keeper\x00") {
		return false
	}
	return slices.ContainsFunc(s.f.workers, func(p *process) bool { return slices.Contains(p.ever(), l.worker) })
}

// empty lets Redis lose all its data, and notes the tasks that are lost with it.
func (s *saboteur) empty(ctx context.Context) error {
	client := s.f.redis.client()
	defer client.Close()
	from := time.Now()
	unread, err := unreadEvents(asynq.NewInspectorFromRedisClient(client))
	if err != nil {
		return err
	}
	held := map[string]*redis.StringSliceCmd{}
	if _, err := client.TxPipelined(ctx, func(p redis.Pipeliner) error { // no task comes between
		for _, key := range []string{"live", "outbox", "expiring"} {
			held[key] = p.ZRange(ctx, prefix+key, 0, -1)
		}
		p.FlushAll(ctx)
		return nil
	}); err != nil {
		return fmt.Errorf("empty redis: %w", err)
	}
	var open []string
	for key, ids := range held {
		for _, id := range ids.Val() {
			if key != "expiring" || strings.Contains(id, "-chat-") { // an answer in the chat is nowhere else
				open = append(open, id)
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.emptied = append(s.emptied, window{from.Add(-time.Second), now})
	for _, id := range open {
		s.gone[id] = now
	}
	s.unread = append(s.unread, unread...)
	return nil
}

// unreadEvents returns the inbox's events that are not interpreted yet, each as its ID and body, and the IDs of those
// that were ignored.
func unreadEvents(inbox *asynq.Inspector) (unread []string, err error) {
	all := asynq.PageSize(100_000)
	for _, list := range []func(string, ...asynq.ListOption) ([]*asynq.TaskInfo, error){
		inbox.ListPendingTasks, inbox.ListActiveTasks, inbox.ListRetryTasks, inbox.ListCompletedTasks,
	} {
		events, err := list("inbox", all)
		if errors.Is(err, asynq.ErrQueueNotFound) {
			return nil, nil // nothing was accepted yet
		}
		if err != nil {
			return nil, fmt.Errorf("list events of the inbox: %w", err)
		}
		for _, e := range events {
			if e.State != asynq.TaskStateCompleted {
				unread = append(unread, e.ID+" "+string(e.Payload))
			} else if strings.HasPrefix(string(e.Result), "Ignored: ") {
				unread = append(unread, e.ID)
			}
		}
	}
	return unread, nil
}

// redis injects a fault into the database, one at a time.
func (s *saboteur) redis(ctx context.Context, f fault) {
	s.alone(&s.store, f, func() error {
		if f.kind == emptyRedis {
			return s.empty(ctx)
		}
		from := time.Now()
		back, err := s.f.redis.fault(ctx, f.kind, f.lasts)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.outage = append(s.outage, window{from, back})
		return err
	})
}

// jump sets Redis' clock an hour ahead or back for a while. Other faults of Redis may happen meanwhile.
func (s *saboteur) jump(ctx context.Context, f fault) error {
	ahead := time.Hour
	if f.pick%2 == 0 {
		ahead = -time.Hour
	}
	var errs []error
	for _, a := range []time.Duration{ahead, 0} {
		now := time.Now()
		s.w.note("fault: redis' clock is %s ahead", a)
		errs = append(errs, s.f.redis.setClock(a))
		s.mu.Lock()
		s.outage = append(s.outage, window{now, time.Now()})
		s.mu.Unlock()
		if a != 0 {
			pause(ctx, f.lasts)
		}
	}
	return errors.Join(errs...)
}

// forgive treats events without a final message as not accepted if Redis has lost them: with all its data, or with a
// master that may have been the only one to have them. It returns how many.
func (s *saboteur) forgive(events []event, finals []final) (n int) {
	s.mu.Lock()
	forgot, gone, unread := slices.Clone(s.emptied), maps.Clone(s.gone), slices.Clone(s.unread)
	s.mu.Unlock()
	if s.f.replicas == 0 {
		forgot = append(forgot, s.f.redis.forgot()...)
	}
	covered := map[string]bool{}
	for _, f := range finals {
		for _, id := range f.covers {
			covered[id] = true
		}
	}
	for i, e := range events {
		lost := func(w window) bool { return w.touches(e.acceptedAt, e.acceptedAt.Add(time.Millisecond)) }
		isUnread := func(u string) bool {
			return strings.Contains(u, e.token) || e.delivery != "" && strings.Contains(u, e.delivery)
		}
		if e.accepted && !covered[e.id] &&
			(e.goneWith(gone) || slices.ContainsFunc(forgot, lost) || slices.ContainsFunc(unread, isUnread)) {
			events[i].accepted, events[i].forgiven = false, true
			n++
		}
	}
	return n
}

// accepting is how long an answer to a sender may take to become known here.
const accepting = time.Second

// goneWith reports whether an emptied Redis took the event's task. The time is when. A look finds an event before its
// webhook has arrived, and one that arrives when Redis is empty must become a task again.
func (e event) goneWith(gone map[string]time.Time) bool {
	for id, at := range gone {
		if id == e.id || e.isLook(id) && e.acceptedAt.Before(at.Add(accepting)) {
			return true
		}
	}
	return false
}

// away returns when a worker was without Redis.
func (s *saboteur) away(e exit) []window {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.worker == s.f.workers[len(s.f.workers)-1].name {
		return slices.Concat(s.outage, s.cut)
	}
	return slices.Clone(s.outage)
}

// failures returns when errand's infrastructure failed for a worker: Redis, a service that tasks are from or are stored
// in, or the worker itself, which was frozen.
func (s *saboteur) failures(e exit) []window {
	all := s.away(e)
	for name, service := range s.w.sky {
		if name == model {
			continue
		}
		for _, t := range service.troubles() {
			all = append(all, window{t.from, t.from.Add(time.Nanosecond)})
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.hurt {
		if h.worker == e.pid {
			all = append(all, h.window)
		}
	}
	return append(all, s.emptied...)
}

// disturbances returns when a takeover from a worker had to wait: for Redis, for a service, or for other workers.
func (s *saboteur) disturbances(worker int) []window {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Concat(s.outage, s.cut)
	for _, service := range s.w.sky {
		all = append(all, service.troubles()...)
	}
	for _, h := range s.hurt {
		if h.worker != worker {
			all = append(all, h.window)
		}
	}
	return all
}

// cutOff cuts the last worker off from Redis for a while.
func (s *saboteur) cutOff(ctx context.Context, lasts time.Duration) error {
	from := time.Now()
	err := s.f.redis.cutOff(ctx, lasts)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = append(s.cut, window{from, time.Now()})
	return err
}

// counts returns the number of faults by kind; for services, of requests that really failed.
func (s *saboteur) counts() map[kind]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := maps.Clone(s.done)
	for k, service := range map[kind]place{slackFails: inSlack, githubFails: inGitHub, modelFails: model} {
		for _, n := range s.w.sky[service].failed() {
			all[k] += n
		}
	}
	return all
}
