package worker

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/worker/attempt"
)

// tape is a meter that records its calls.
type tape struct {
	ended chan tasks.Ending

	mu    sync.Mutex
	lines []string
}

func newTape() *tape { return &tape{ended: make(chan tasks.Ending, 10)} }

func (p *tape) note(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines = append(p.lines, line)
}

func (p *tape) heard() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.lines)
}

func (p *tape) Began(_ tasks.Task, waited time.Duration) {
	if waited < 0 {
		p.note("a negative wait")
	}
	p.note("began")
}
func (p *tape) Ran(_ tasks.Task, r agent.Result) { p.note("ran " + string(r.Outcome)) }
func (p *tape) Returned(class string, why attempt.Return) {
	p.note("returned " + class + " " + string(why))
}

func (p *tape) Submitted(t tasks.Task, r desk.Receipt) {
	p.note("submitted " + t.Class + " " + map[bool]string{true: "new"}[r.New])
}

func (p *tape) Ended(_ tasks.Task, e tasks.Ending, lag time.Duration) {
	if lag < 0 || lag > time.Minute {
		p.note("a strange lag: " + lag.String())
	}
	p.note("ended " + string(e.Kind))
	p.ended <- e
}

// metered starts a worker with a tape.
func (f *fleet) metered(p *tape) (stop func()) {
	f.Helper()
	return f.worker(func(c *Config) { c.Meter = p })
}

// tell waits for that many endings and compares the tape.
func (f *fleet) tell(p *tape, endings int, want ...string) {
	f.Helper()
	for range endings {
		select {
		case <-p.ended:
		case <-time.After(await.Bound):
			f.Fatalf("no ending was told: %q", p.heard())
		}
	}
	if diff := cmp.Diff(want, p.heard()); diff != "" {
		f.Error(diff)
	}
}

// The meter gets each step of a task once, and its ending only when the final message is posted.
func TestMeterFollowsTheTask(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.agent.do = failing(failed(agent.ClassOverloaded))
	f.source.fail = func(attempt int) error {
		if attempt == 1 {
			return errors.New("the source is away")
		}
		return nil
	}
	p := newTape()
	f.metered(p)
	f.submit(f.task("a", "go"))
	f.tell(p, 1, "began", "ran failed", "returned interactive retry", "ran done", "ended answered")
}

// Nothing runs, and still it has ended.
func TestMeterHearsOfWhatNeverRan(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.source.brief = func(tasks.Task) (tasks.Brief, error) { return tasks.Brief{}, &tasks.InputError{Sentence: "No."} }
	p := newTape()
	f.metered(p)
	f.submit(f.task("a", "go"))
	f.tell(p, 1, "ended refused")
}

// A drained worker returns its run; the worker that continues it does not count another start.
func TestMeterCountsAHandOver(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	started := make(chan string, 1)
	f.agent.do = untilStopped(started)
	first, second := newTape(), newTape()
	stop := f.metered(first)
	f.submit(f.task("a", "go"))
	<-started
	stop()
	f.tell(first, 0, "began", "ran stopped", "returned interactive drain")
	f.agent.do = nil
	f.metered(second)
	f.tell(second, 1, "ran done", "ended answered")
}

// A duplicate is counted as a duplicate, and only once as new; a refused task is not counted.
func TestMeterAtTheDesk(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	p := newTape()
	desk := f.desk.Metered(p.Submitted)
	task := f.task("a", "go")
	for range 2 {
		if _, err := desk.Submit(t.Context(), task); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := desk.Submit(t.Context(), tasks.Task{}); err == nil {
		t.Error("an empty task was taken")
	}
	f.tell(p, 0, "submitted interactive new", "submitted interactive ")
}
