package keeper

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
)

// Those who ask meanwhile share an attempt, and each stops waiting by itself.
func TestProbeIsShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var p Probe[int]
		attempts := 0
		answer := make(chan int)
		try := func(ctx context.Context) (int, *Unavailable) {
			attempts++
			select {
			case n := <-answer:
				return n, nil
			case <-ctx.Done():
				return 0, &Unavailable{Problem: "slow", Busy: true}
			}
		}
		var asked sync.WaitGroup
		stopped, stop := context.WithCancel(t.Context())
		asked.Go(func() {
			if _, unavailable := p.Find(stopped, try); unavailable == nil || !unavailable.Busy {
				t.Errorf("the first: %v", unavailable)
			}
		})
		synctest.Wait()
		for range 3 {
			asked.Go(func() {
				if n, unavailable := p.Find(t.Context(), try); n != 7 || unavailable != nil {
					t.Errorf("%d, %v", n, unavailable)
				}
			})
		}
		synctest.Wait()
		stop() // whoever began the attempt
		synctest.Wait()
		answer <- 7
		asked.Wait()
		if n, _ := p.Find(t.Context(), try); n != 7 || attempts != 1 {
			t.Errorf("%d after %d attempts", n, attempts)
		}
	})
}
