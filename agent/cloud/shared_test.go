package cloud

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
		s := Shared[int]{Get: func(context.Context) (int, error) {
			<-time.After(time.Second)
			calls++
			return calls, broken
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

		broken = errors.New("no role")
		begun := time.Now()
		for range 10 { // one after the other
			if _, err := s.Wait(t.Context()); !errors.Is(err, broken) {
				t.Error(err)
			}
		}
		if calls != 2 || time.Since(begun) != time.Second {
			t.Errorf("%d calls in %v", calls, time.Since(begun))
		}
		broken = nil
		<-time.After(failurePause)
		if n, err := s.Wait(t.Context()); n != 3 || err != nil {
			t.Errorf("later: %d, %v", n, err)
		}
	})
}
