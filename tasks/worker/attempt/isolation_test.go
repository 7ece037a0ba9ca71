package attempt

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/record"
	"github.com/errand-fleet/errand/tasks/worker/machine"
)

// died leaves a task as that many dead workers do; the claim of the last one has not expired yet.
func (f *fleet) died(t tasks.Task, times int) {
	f.Helper()
	f.submit(t)
	fleet := f.open(store.Config{Redis: f.redis()}) // whose claims last
	for n := range times {
		rec, err := fleet.Get(f.Context(), t.ID)
		if err == nil && n > 0 {
			f.lapse(t.Thread)
			rec, err = fleet.Requeue(f.Context(), t.ID, rec.Delivery, rec.Fence, true)
		}
		if err == nil {
			var c *store.Claim
			if c, err = fleet.Claim(f.Context(), t.ID, rec.Delivery, "dead"); err == nil {
				err = c.Idle(f.Context(), "") // it had begun
			}
		}
		if err != nil {
			f.Fatal(err)
		}
	}
}

const noted = "noted" // claimedBy as the record has it

// claimedBy is the run of a suspect, claimed by a worker that is not started, beside another run or not. crashed is
// when its crash was found, in microseconds.
func (f *fleet) claimedBy(w *Processor, deaths int, beside bool, crashed string) *run {
	f.Helper()
	task := f.task("b", "x")
	if deaths == 0 {
		f.submit(task)
	} else {
		f.died(task, deaths)
		f.lapse(task.Thread)
	}
	rec, err := f.store.Get(f.Context(), task.ID)
	if err == nil && deaths > 0 {
		rec, err = f.store.Requeue(f.Context(), task.ID, rec.Delivery, rec.Fence, true)
	}
	if err == nil && crashed != noted {
		err = f.rdb.HSet(f.Context(), "errand:task:"+task.ID, "crashed", crashed).Err()
	}
	if err != nil {
		f.Fatal(err)
	}
	if beside {
		if _, err := w.Slots.Take(tasks.Interactive); err != nil {
			f.Fatal(err)
		}
	}
	slot, err := w.Slots.Take(tasks.Interactive)
	if err != nil {
		f.Fatal(err)
	}
	claim, err := w.Store.Claim(f.Context(), task.ID, rec.Delivery, w.Worker)
	if err != nil {
		f.Fatal(err)
	}
	r := w.hold(f.Context(), claim, slot)
	f.Cleanup(func() { w.handOn(r) })
	return r
}

// A suspect looks a moment for a worker without other suspects, and then starts beside them.
func TestSuspectsSpread(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		there  int // suspects on the worker
		looked time.Duration
		later  bool
	}{
		"none there":       {0, 0, false},
		"one there":        {1, 0, true},
		"one there, again": {1, spreadStep, false},
		"two there":        {2, spreadStep, true},
		"many there":       {6, spreadStep, true},
		"many, again":      {6, spreadMost * spreadStep, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			w := f.idle(func(c *Config) { c.Slots = machine.NewSlots(8, machine.Memory{}, c.Log) })
			for range c.there {
				s, err := w.Slots.Take(tasks.Interactive)
				if err != nil {
					t.Fatal(err)
				}
				if _, joined := s.JoinSuspects(c.there); !joined {
					t.Fatal("it is no suspect")
				}
			}
			r := f.claimedBy(w, 1, true, noted)
			rec := r.Claim.Record()
			rec.Crashed = rec.Started.Add(-c.looked)
			err := spread(r, rec)
			later, is := errors.AsType[*tasks.ErrLater](err)
			if is != c.later || is && later.At.After(time.Now().Add(spreadMost*spreadStep)) {
				t.Errorf("it waits: %v", err)
			}
		})
	}
}

// However long a suspect waits, it holds its worker for at most half of that time, and in the end for longer than any
// run takes.
func TestPatienceOfASuspect(t *testing.T) {
	t.Parallel()
	i := &isolation{alone: Timing{}.WithDefaults().Alone}
	patience := func(waited time.Duration) time.Duration {
		return i.patience(store.Record{
			Crashes: record.MaxCrashes - 1, Crashed: time.Unix(1e9, 0), Started: time.Unix(1e9, 0).Add(waited),
		})
	}
	for waited, want := range map[time.Duration]time.Duration{
		0: 0, 9 * time.Second: 0, 10 * time.Second: 110 * time.Second,
	} {
		if got := patience(waited); got != want {
			t.Errorf("after %s: %s, want %s", waited, got, want)
		}
	}
	kept, most := 0, time.Duration(0)
	for waited := 2 * time.Minute; waited < 48*time.Hour; waited += time.Minute {
		if p := patience(waited); p > 0 {
			kept, most = kept+1, max(most, p)
		}
		if all := int(waited/time.Minute) - 1; 2*kept > all {
			t.Fatalf("keeps a worker for %d of the first %d minutes", kept, all)
		}
	}
	if most != longest {
		t.Errorf("waits for %s at most", most)
	}
	i.limit = 4 * time.Hour
	if got := patience(100 * 365 * 24 * time.Hour); got > 4*time.Hour {
		t.Errorf("after a century: %s", got)
	}
	if got := patience(-time.Hour); got != 0 {
		t.Errorf("before the death of its worker: %s", got)
	}
}

// A record whose time of death is missing or impossible does not delay a suspect for long.
func TestSuspectAsksAgainSoon(t *testing.T) {
	t.Parallel()
	i, now := &isolation{alone: Timing{}.WithDefaults().Alone}, time.Unix(1e9, 0)
	for crashed, soon := range map[time.Time]time.Duration{
		{}: 2 * postponeLeast, now: 2 * postponeLeast, now.Add(time.Hour): 2 * postponeLeast,
		now.AddDate(-100, 0, 0): 2 * postponeMost,
	} {
		rec := store.Record{Crashes: record.MaxCrashes - 1, Crashed: crashed, Started: now}
		if got := i.patience(rec); crashed.IsZero() && got != 0 {
			t.Errorf("patience %s", got)
		}
		later, ok := errors.AsType[*tasks.ErrLater](postpone(rec))
		if !ok || time.Until(later.At) > soon {
			t.Errorf("crashed %s: asks again at %v", crashed, later)
		}
	}
}

// A worker's death counts against a suspect only if no other run can have caused it; otherwise the task is not given up
// for it. For a task that kills its worker before its CLI starts, that means on an empty worker.
func TestDeathBesideOthersIsNotTheLast(t *testing.T) {
	t.Parallel()
	accept := func(w *Processor, r *run) error { _, err := w.open(r); return err }
	asks := func(w *Processor, r *run) error { return w.isolation.isolate(r, true) }
	waits := func(w *Processor, r *run) error { return w.isolation.awaitSolitude(r, time.Millisecond) }
	for name, c := range map[string]struct {
		deaths int
		beside bool
		steps  []func(*Processor, *run) error
		later  bool
		idle   bool
		apart  bool // nothing new starts on the worker
	}{
		"claimed":      {record.MaxCrashes - 1, false, nil, false, true, false},
		"never died":   {0, true, nil, false, false, false},
		"empty worker": {record.MaxCrashes - 1, false, []func(*Processor, *run) error{accept}, false, false, true},
		"alone": {
			record.MaxCrashes - 1, false, []func(*Processor, *run) error{accept, asks}, false, false, true,
		},
		"beside others":             {record.MaxCrashes - 1, true, []func(*Processor, *run) error{accept}, true, true, false},
		"beside others, not strict": {1, true, []func(*Processor, *run) error{accept, asks}, false, false, false},
		"no patience":               {record.MaxCrashes - 1, true, []func(*Processor, *run) error{asks}, true, true, true},
		"out of patience":           {record.MaxCrashes - 1, true, []func(*Processor, *run) error{waits}, true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			w := f.idle(func(c *Config) { c.Timing.Alone = time.Hour })
			w.Health.Check(t.Context())
			r := f.claimedBy(w, c.deaths, c.beside, noted)
			var err error
			for _, step := range c.steps {
				if err == nil {
					err = step(w, r)
				}
			}
			if _, later := errors.AsType[*tasks.ErrLater](err); later != c.later || err != nil && !later {
				t.Errorf("it waits: %t, %v", later, err)
			}
			idle, err := f.rdb.HExists(t.Context(), "errand:task:"+r.Claim.ID(), "idle").Result()
			if err != nil || idle != c.idle {
				t.Errorf("idle: %t, %v", idle, err)
			}
			if _, err := w.Slots.Take(tasks.Interactive); errors.Is(err, machine.ErrAlone) != c.apart {
				t.Errorf("another run: %v", err)
			}
		})
	}
}

// A suspect that checks, beside other runs, whether it was already answered is not given up for what those runs do to
// the worker.
func TestRecallBesideOthersIsNoDeath(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	w := f.idle(func(c *Config) {
		c.Timing.Alone = time.Hour
		c.Store = f.open(store.Config{Redis: f.redis()}) // which renews a claim seldom
	})
	// It has looked for an idle worker for long enough.
	r := f.claimedBy(w, record.MaxCrashes-1, true, strconv.FormatInt(time.Now().Add(-30*time.Minute).UnixMicro(), 10))
	if _, err := w.open(r); err != nil {
		t.Fatal(err)
	}
	rec := r.Claim.Record()
	now, err := store.Record{}, store.ErrStale
	for try := 0; errors.Is(err, store.ErrStale) && try < 100; try++ { // a renewal may come between the two steps
		f.lapse(r.Claim.Thread())
		now, err = f.store.Requeue(t.Context(), rec.ID, rec.Delivery, rec.Fence, true)
	}
	if err != nil || now.Crashes != rec.Crashes {
		t.Errorf("%d crashes, were %d: %v", now.Crashes, rec.Crashes, err)
	}
}
