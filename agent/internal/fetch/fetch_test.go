package fetch

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		var broken error
		var life time.Duration
		s := Shared[int]{Get: func(context.Context) (int, time.Duration, error) {
			<-time.After(time.Second)
			calls++
			return calls, life, broken
		}}
		impatient, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := s.Wait(impatient); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the impatient one gets %v", err)
		}
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if n, err := s.Wait(t.Context()); n != 1 || err != nil {
					t.Errorf("the others get %d, %v", n, err)
				}
			})
		}
		all.Wait()

		broken, life = errors.New("no role"), FailurePause
		begun := time.Now()
		for range 10 { // one after the other
			if _, err := s.Wait(t.Context()); !errors.Is(err, broken) {
				t.Error(err)
			}
		}
		if calls != 2 || time.Since(begun) != time.Second {
			t.Errorf("%d calls in %v", calls, time.Since(begun))
		}
		broken, life = nil, time.Hour
		<-time.After(FailurePause)
		for range 2 {
			if n, err := s.Wait(t.Context()); n != 3 || err != nil {
				t.Errorf("later: %d, %v", n, err)
			}
		}
		s.Renew(func(n int) bool { return n != 3 })
		s.Renew(func(n int) bool { return n == 3 })
		if n, err := s.Wait(t.Context()); n != 4 || err != nil {
			t.Errorf("renewed: %d, %v", n, err)
		}
		<-time.After(time.Hour)
		if n, err := s.Wait(t.Context()); n != 5 || err != nil {
			t.Errorf("after its life: %d, %v", n, err)
		}
	})
}

// A panic is a failure like any other: it ends neither the process nor later calls.
func TestSharedPanics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		s := Shared[int]{Get: func(context.Context) (int, time.Duration, error) {
			if calls++; calls == 1 {
				panic("no answer")
			}
			return calls, time.Hour, nil
		}}
		for range 2 {
			if _, err := s.Wait(t.Context()); err == nil || err.Error() != "panic: no answer" {
				t.Error(err)
			}
		}
		<-time.After(FailurePause)
		if n, err := s.Wait(t.Context()); n != 2 || err != nil {
			t.Errorf("later: %d, %v", n, err)
		}
	})
}
