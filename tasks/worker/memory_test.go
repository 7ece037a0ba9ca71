package worker

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
)

// A run gets a slot if it fits beside the runs that have not reached their full size yet.
func TestSlotsWaitForMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		available := int64(0)
		s := newSlots(8, memory{available: func() int64 { return available }, run: 100}, slog.New(slog.DiscardHandler))
		take := func(class string, want error) *slot {
			t.Helper()
			got, err := s.take(class)
			if !errors.Is(err, want) {
				t.Errorf("a slot for %s with %d of memory, %d running: %v, want %v", class, available,
					s.running(), err, want)
			}
			return got
		}
		first := take(tasks.Interactive, nil) // the only one, so it starts however little there is
		take(tasks.Interactive, errNoMemory)
		available = 199
		take(tasks.Interactive, errNoMemory) // the first will take 100 of it
		available = 200
		second := take(tasks.Interactive, nil)
		available = 300
		first.begin()
		<-time.After(settling - 1)
		take(tasks.Review, errNoMemory)
		<-time.After(1) // the first has reached its size, the second has not started
		available = 200
		take(tasks.Review, errNoMemory) // an interactive task no longer fits
		available = 300
		third := take(tasks.Review, nil)
		third.release()
		second.release()
		available = 99
		take(tasks.Interactive, errNoMemory)
		available = 100
		take(tasks.Interactive, nil)
	})
}

// The log says once when memory gets short and once when there is enough again, however many deliveries ask in between.
func TestShortMemoryIsToldOnce(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	available := int64(50)
	s := newSlots(4, memory{available: func() int64 { return available }, run: 100},
		slog.New(slog.NewTextHandler(&log, nil)))
	told := func(short, enough int) {
		t.Helper()
		if a, b := strings.Count(log.String(), "memory is short"), strings.Count(log.String(),
			"suffices again"); a != short || b != enough {
			t.Errorf("reported %d times that it is short, %d times that it suffices; want %d, %d:\n%s", a, b, short,
				enough, log.String())
		}
	}
	for range 5 {
		_, _ = s.take(tasks.Interactive)
		_, _ = s.take(tasks.Review)
	}
	told(1, 0)
	available = 1000
	for range 2 {
		if _, err := s.take(tasks.Interactive); err != nil {
			t.Error(err)
		}
	}
	told(1, 1)
	available = 50
	_, _ = s.take(tasks.Interactive)
	told(2, 1)
}

// A task that does not fit beside the running one waits for it, and then runs without neighbours.
func TestTasksWaitForMemory(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	looked := make(chan struct{}, 100)
	enough := make(chan struct{})
	f.agent.do = func(context.Context, agent.Spec, agent.Host) (agent.Result, error) {
		<-enough
		return answer("done"), nil
	}
	f.worker(func(c *Config) {
		c.Timing.Beat = time.Hour // it looks, too: once
		c.Memory = func() int64 {
			looked <- struct{}{}
			return 0
		}
	})
	first, second := f.submit(f.task("a", "x")), f.submit(f.task("b", "x"))
	for range 4 { // the heartbeat and each task have asked, and one has asked twice
		<-looked
	}
	close(enough)
	for _, id := range []string{first, second} {
		if e := f.ending(id); e.Kind != tasks.Answered {
			t.Errorf("ending %+v", e)
		}
	}
	if f.agent.peak != 1 {
		t.Errorf("%d runs at once, want 1", f.agent.peak)
	}
}
