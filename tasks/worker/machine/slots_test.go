package machine

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/errand-fleet/errand/tasks"
)

// A run gets a slot if it fits beside the runs that have not reached their full size yet.
func TestSlotsWaitForMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		available := int64(0)
		s := NewSlots(8, Memory{Available: func() int64 { return available }, Run: 100}, slog.New(slog.DiscardHandler))
		take := func(class string, want error) *Slot {
			t.Helper()
			got, err := s.Take(class)
			if !errors.Is(err, want) {
				t.Errorf("a slot for %s with %d of memory, %d running: %v, want %v", class, available,
					s.Running(), err, want)
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
		first.Begin()
		<-time.After(settling - 1)
		take(tasks.Review, errNoMemory)
		<-time.After(1) // the first has reached its size, the second has not started
		available = 200
		take(tasks.Review, errNoMemory) // an interactive task no longer fits
		available = 300
		third := take(tasks.Review, nil)
		third.Release()
		second.Release()
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
	s := NewSlots(4, Memory{Available: func() int64 { return available }, Run: 100},
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
		_, _ = s.Take(tasks.Interactive)
		_, _ = s.Take(tasks.Review)
	}
	told(1, 0)
	available = 1000
	for range 2 {
		if _, err := s.Take(tasks.Interactive); err != nil {
			t.Error(err)
		}
	}
	told(1, 1)
	available = 50
	_, _ = s.Take(tasks.Interactive)
	told(2, 1)
}

// Automatic work of all classes together leaves one slot free, in any order of arrival.
func TestSlotsLeaveOneForPeople(t *testing.T) {
	t.Parallel()
	for total := 2; total <= 6; total++ {
		s := NewSlots(total, Memory{}, slog.New(slog.DiscardHandler))
		for range 10 {
			for _, class := range []string{tasks.Maintenance, tasks.Background, tasks.Review} {
				_, _ = s.Take(class)
			}
		}
		slot, err := s.Take(tasks.Interactive)
		if err != nil {
			t.Errorf("none of %d slots is left for interactive tasks", total)
			continue
		}
		if total > 2 && s.Running() < 2 {
			t.Errorf("of %d slots only %d are used", total, s.Running())
		}
		before := s.Running()
		slot.Release()
		slot.Release() // a second call returns nothing
		if s.Running() != before-1 {
			t.Errorf("after release %d slots are taken, before %d", s.Running(), before)
		}
		people := 0
		for {
			if _, err := s.Take(tasks.Interactive); err != nil {
				break
			}
			people++
		}
		if s.Running() > max(total, 2) || people == 0 {
			t.Errorf("%d of %d slots taken, %d by people", s.Running(), total, people)
		}
	}
}

// Room is what Take would give, at once when a slot is released and soon when memory is.
func TestRoomIsAwaited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var available atomic.Int64
		available.Store(math.MaxInt64)
		s := NewSlots(3, Memory{Available: available.Load}, slog.New(slog.DiscardHandler))
		awaited := func(ctx context.Context, class string) time.Duration {
			begun := time.Now()
			s.AwaitRoom(ctx, class)
			return time.Since(begun)
		}
		take := func(class string) *Slot {
			slot, err := s.Take(class)
			if err != nil {
				t.Fatal(err)
			}
			return slot
		}
		take(tasks.Interactive)
		take(tasks.Review)
		other := take(tasks.Review)
		time.AfterFunc(time.Second, other.Release)
		if got := awaited(t.Context(), tasks.Interactive); got != time.Second {
			t.Errorf("room for people after %v", got)
		}
		people := take(tasks.Interactive)
		time.AfterFunc(time.Second, people.Release)
		if got := awaited(t.Context(), tasks.Background); got != time.Second {
			t.Errorf("room for background work after %v", got)
		}
		available.Store(0)
		time.AfterFunc(lookAgain*3/2, func() { available.Store(math.MaxInt64) })
		if got := awaited(t.Context(), tasks.Interactive); got != 2*lookAgain {
			t.Errorf("room in memory after %v", got)
		}
		take(tasks.Interactive)
		drained, drain := context.WithTimeout(t.Context(), time.Minute)
		defer drain()
		if got := awaited(drained, tasks.Interactive); got != time.Minute {
			t.Errorf("a drain ends the wait after %v", got)
		}
	})
}
