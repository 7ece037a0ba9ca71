package worker

import (
	"context"
	"log/slog"
	"math"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/modelfake"
	"github.com/errand-fleet/errand/internal/modelfake/clitest"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// readyRunner is a Runner that tells which CLIs it keeps ready.
type readyRunner struct {
	*agent.Runner
	kept chan *agent.Ready
}

func (r readyRunner) Ready(ctx context.Context, s agent.Spec) (*agent.Ready, error) {
	y, err := r.Runner.Ready(ctx, s)
	if err == nil {
		r.kept <- y
	}
	return y, err
}

// readyFleet is a worker with the real CLI, which keeps one CLI ready.
type readyFleet struct {
	*fleet
	model  *modelfake.Server
	runner readyRunner
	tape   *tape
	memory atomic.Int64
	stop   func()
}

func newReadyFleet(t *testing.T) *readyFleet {
	t.Helper()
	f := &readyFleet{fleet: newFleet(t), model: modelfake.New(), tape: newTape()}
	t.Cleanup(f.model.Close)
	f.model.Answer("", modelfake.Turn{Text: "You said {{prompt}}; that makes {{turns}}."})
	temp, err := os.MkdirTemp("", "wr") //nolint:usetesting // t.TempDir contains the test's name, which is too long for a run's sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
		_ = os.RemoveAll(temp)
	})
	runner, err := agent.New(agent.Config{
		CLI: clitest.Find(t), LogDir: t.TempDir(), TempDir: temp, BaseURL: f.model.URL(),
		Credential: agent.Credential{APIKey: "sk-ant-test-credential"},
	})
	if err != nil {
		t.Fatal(err)
	}
	f.runner = readyRunner{runner, make(chan *agent.Ready, 10)}
	f.memory.Store(math.MaxInt64)
	f.stop = f.worker(func(c *Config) {
		c.Runner, c.Meter, c.Slots, c.ReadyCLIs, c.Memory, c.MinVersion = f.runner, f.tape, 2, 1, f.memory.Load, ""
	})
	return f
}

// say sends a message to a thread and checks the answer.
func (f *readyFleet) say(thread, text, want string) {
	f.Helper()
	if e := f.ending(f.submit(f.task(thread, text))); e.Result.Text != want {
		f.Errorf("%s: %+v, want %q", text, e, want)
	}
}

// fates returns what has become of the CLIs.
func (f *readyFleet) fates() []string {
	return slices.DeleteFunc(f.tape.heard(), func(line string) bool { return len(line) < 6 || line[:6] != "ready " })
}

// The next message of a thread gets the CLI that was kept ready for it, and then there is another one. A drain ends it.
func TestReadyCLIs(t *testing.T) {
	t.Parallel()
	f := newReadyFleet(t)
	f.say("a", "one", "You said one; that makes 1.")
	f.say("a", "two", "You said two; that makes 2.")
	f.say("a", "three", "You said three; that makes 3.")
	first, second, third := <-f.runner.kept, <-f.runner.kept, <-f.runner.kept
	<-first.Done()
	<-second.Done()
	f.stop()
	<-third.Done()
	if got := f.fates(); !slices.Equal(got, []string{"ready used", "ready used", "ready evicted"}) {
		t.Errorf("%q", got)
	}
}

// A CLI that is kept ready leaves as soon as runs need all slots, or the memory, and delays none of them.
func TestReadyCLIsMakeRoom(t *testing.T) {
	t.Parallel()
	f := newReadyFleet(t)
	gate, asked := make(chan struct{}), make(chan struct{}, 2)
	f.model.Answer("wait", modelfake.Turn{Text: "done", Gate: gate, Started: asked})
	f.say("a", "one", "You said one; that makes 1.")
	first := <-f.runner.kept
	b, c := f.submit(f.task("b", "wait")), f.submit(f.task("c", "wait"))
	<-asked
	<-asked
	<-first.Done() // while both work
	close(gate)
	f.ending(b)
	f.ending(c)
	f.say("a", "two", "You said two; that makes 2.")
	if got := f.fates(); slices.Contains(got, "ready used") || !slices.Contains(got, "ready evicted") {
		t.Errorf("%q", got)
	}
}

func TestReadyCLIsLeaveTheirMemory(t *testing.T) {
	t.Parallel()
	f := newReadyFleet(t)
	f.say("a", "one", "You said one; that makes 1.")
	first := <-f.runner.kept
	f.memory.Store(0)
	f.say("b", "two", "You said two; that makes 1.")
	<-first.Done()
	f.say("b", "three", "You said three; that makes 2.")
	if got := f.fates(); !slices.Equal(got, []string{"ready evicted"}) { // and there is no room for another one
		t.Errorf("%q", got)
	}
}

// slowStart is a Runner whose CLIs start until that is stopped.
type slowStart struct {
	*fakeAgent
	begun chan struct{} // gets a token for each; nil: none
}

func (r slowStart) Ready(ctx context.Context, _ agent.Spec) (*agent.Ready, error) {
	if r.begun != nil {
		r.begun <- struct{}{}
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

// slotsWithReady returns slots in which most CLIs are kept ready.
func slotsWithReady(total, most int, r Runner) *slots {
	s := newSlots(total, memory{}, slog.New(slog.DiscardHandler))
	s.ready = &readyCLIs{Config: &Config{
		Runner: r, ReadyCLIs: most, Meter: unmetered{}, Log: s.log, Timing: Timing{Ready: time.Minute},
	}}
	return s
}

// after is a run that is over, for whose thread a CLI can be kept ready.
func after(t *testing.T, s *slot) *run {
	return &run{ctx: t.Context(), slot: s, claim: &store.Claim{}, next: &agent.Spec{}}
}

// The start of a CLI that is to be kept ready counts as one. It stops as soon as a run needs its place.
func TestReadyCLILeavesWhileItStarts(t *testing.T) {
	t.Parallel()
	for name, need := range map[string]func(s *slots) error{
		"slots": func(s *slots) error {
			for range 2 {
				taken, err := s.take(tasks.Interactive)
				if err != nil {
					return err
				}
				taken.begin()
			}
			return nil
		},
		"memory": func(s *slots) error {
			s.mu.Lock()
			s.memory.available = func() int64 { return 0 }
			s.mu.Unlock()
			_, err := s.take(tasks.Interactive)
			return err
		},
		"stop": func(s *slots) error { s.ready.close(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := slowStart{&fakeAgent{}, make(chan struct{})}
				s, begun := slotsWithReady(2, 1, r), time.Now()
				done := make(chan struct{})
				go func() { defer close(done); s.ready.start(after(t, &slot{of: s})) }()
				<-r.begun
				if err := need(s); err != nil {
					t.Error(err)
				}
				<-done
				if d := time.Since(begun); d != 0 {
					t.Errorf("it left after %v", d)
				}
			})
		})
	}
}

// However many runs begin and end at the same time, they and the CLIs that are kept ready are never more than the
// slots.
func TestReadyCLIsAndRunsFitIntoTheSlots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := slotsWithReady(4, 3, slowStart{fakeAgent: &fakeAgent{}})
		var most atomic.Int64
		count := func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.ready.mu.Lock()
			defer s.ready.mu.Unlock()
			n := len(s.ready.list)
			for h := range s.held {
				if !h.begun.IsZero() {
					n++
				}
			}
			most.Store(max(most.Load(), int64(n)))
		}
		var all sync.WaitGroup
		for range 40 {
			all.Go(func() {
				for range 500 {
					count()
					taken, err := s.take(tasks.Interactive)
					if err != nil {
						runtime.Gosched()
						continue
					}
					taken.begin()
					count()
					taken.release()
					all.Go(func() { s.ready.start(after(t, taken)) })
					runtime.Gosched()
					count()
				}
			})
		}
		all.Wait()
		s.ready.close()
		if n := most.Load(); n != 4 || len(s.ready.list) > 0 {
			t.Errorf("up to %d runs and CLIs in 4 slots; %d CLIs left", n, len(s.ready.list))
		}
	})
}
