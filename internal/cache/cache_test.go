package cache

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Concurrent requests for the same key should make one call, and the cache should keep no more answers than its size.
func TestCacheAsksOnce(t *testing.T) {
	t.Parallel()
	c := Cache[int]{Limit: time.Minute, Life: time.Minute, Now: time.Now}
	var calls atomic.Int32
	hold := make(chan struct{})
	var asking sync.WaitGroup
	for range 8 {
		asking.Go(func() {
			v, err := c.Get(t.Context(), "a", func(context.Context) (int, error) {
				calls.Add(1)
				<-hold
				return 1, nil
			})
			if v != 1 || err != nil {
				t.Error(v, err)
			}
		})
	}
	close(hold)
	asking.Wait()
	if n := calls.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
	for i := range maxCached + 10 {
		if _, err := c.Get(t.Context(), fmt.Sprint(i), func(context.Context) (int, error) {
			return i, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(c.entries); n > maxCached {
		t.Errorf("%d are kept", n)
	}
}

// A caller that has no more time does not wait for another's call, and an answer without a life is known for good.
func TestCacheWaits(t *testing.T) {
	t.Parallel()
	c := Cache[string]{Limit: time.Minute, Now: time.Now}
	begun, hold := make(chan struct{}), make(chan struct{})
	done := make(chan string)
	go func() {
		v, _ := c.Get(t.Context(), "", func(context.Context) (string, error) {
			close(begun)
			<-hold
			return "me", nil
		})
		done <- v
	}()
	<-begun
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Get(ctx, "", nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, ok := c.Peek(""); ok {
		t.Error("known before it was answered")
	}
	close(hold)
	if v := <-done; v != "me" {
		t.Error(v)
	}
	if v, ok := c.Peek(""); v != "me" || !ok {
		t.Error(v, ok)
	}
}

// A question outlives the caller that asked it first: others wait for its answer, until it takes too long.
func TestCacheOutlivesCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := Cache[string]{Limit: time.Minute, ErrorLife: time.Hour, Now: time.Now}
		var latency time.Duration
		ask := func(ctx context.Context) (string, error) {
			select {
			case <-time.After(latency):
				return "me", nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}
		for _, s := range []struct {
			key     string
			latency time.Duration
			want    string
			err     error
		}{
			{"answered", 30 * time.Second, "me", nil},
			{"too late", 2 * time.Minute, "", context.DeadlineExceeded},
		} {
			latency = s.latency
			short, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := c.Get(short, s.key, ask); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s, first caller: %v", s.key, err)
			}
			cancel()
			begun := time.Now()
			if v, err := c.Get(t.Context(), s.key, ask); v != s.want || !errors.Is(err, s.err) {
				t.Errorf("%s, second caller: %q, %v", s.key, v, err)
			}
			if took := time.Since(begun); took >= time.Minute {
				t.Errorf("%s: asked again: %s", s.key, took)
			}
		}
	})
}

// An answer and an error count for their own time.
func TestCacheExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := Cache[string]{Limit: time.Minute, Life: time.Minute, ErrorLife: time.Second, Now: time.Now}
		get := func(answer string, err error) string {
			v, err := c.Get(t.Context(), "k", func(context.Context) (string, error) { return answer, err })
			if err != nil {
				return err.Error()
			}
			return v
		}
		failed := errors.New("failed")
		for _, step := range []struct {
			wait   time.Duration
			answer string
			err    error
			want   string
		}{
			{0, "", failed, "failed"},
			{500 * time.Millisecond, "one", nil, "failed"},
			{time.Second, "one", nil, "one"},
			{30 * time.Second, "two", nil, "one"},
			{time.Minute, "two", nil, "two"},
		} {
			time.Sleep(step.wait) //nolint:forbidigo // of the bubble's clock
			if got := get(step.answer, step.err); got != step.want {
				t.Errorf("after %s: %s, want %s", step.wait, got, step.want)
			}
		}
	})
}

// An answer is as old as its question where that is wanted; otherwise one that took longer than it counts is not asked
// for again at once.
func TestAgeOfAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]*Cache[int]{
		"from the question": {Life: 30 * time.Second, FromAsked: true},
		"from the answer":   {Life: 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c.Limit, c.Now = 30*time.Second, time.Now
				asked := 0
				for _, want := range []int{1, 1, 2} {
					v, err := c.Get(t.Context(), "k", func(context.Context) (int, error) {
						asked++
						<-time.After(25 * time.Second)
						return asked, nil
					})
					if err != nil || v != want {
						t.Errorf("answer %d, %v, want %d", v, err, want)
					}
					<-time.After(3 * time.Second)
				}
			})
		})
	}
}

// A question that panics is an error of those who asked, and does not end the process.
func TestPanic(t *testing.T) {
	t.Parallel()
	c := Cache[string]{Limit: time.Minute, Now: time.Now}
	if _, err := c.Get(t.Context(), "k", func(context.Context) (string, error) { panic("no") }); err == nil ||
		!strings.Contains(err.Error(), "panic: no") {
		t.Errorf("%v", err)
	}
	if got, err := c.Get(t.Context(), "k", func(context.Context) (string, error) { return "v", nil }); got != "v" {
		t.Errorf("%s, %v", got, err)
	}
}

// An answer that is dropped is asked for again, unless it is another one or still on its way.
func TestCacheDrops(t *testing.T) {
	t.Parallel()
	c := Cache[int]{Limit: time.Minute, Now: time.Now}
	n := 0
	ask := func(context.Context) (int, error) { n++; return n, nil }
	c.Drop("a", func(int) bool { return true })
	for want, stale := range []int{0, 7, 1} {
		c.Drop("a", func(v int) bool { return v == stale })
		if v, err := c.Get(t.Context(), "a", ask); err != nil || v != max(1, want) {
			t.Errorf("stale %d: %d, %v", stale, v, err)
		}
	}
}
