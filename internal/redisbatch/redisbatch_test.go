package redisbatch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// gate is where batches wait, and tell how many calls each has.
type gate struct {
	came chan int
	open chan struct{}
}

func (g gate) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (g gate) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (g gate) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() == "evalsha" { // and not the greeting of a new connection
			g.came <- len(cmds)
			<-g.open
		}
		return next(ctx, cmds)
	}
}

// echo answers what it is given, unless that is to fail.
var echo = redis.NewScript(`if ARGV[1] == 'fail' then return redis.error_reply('NO it fails') end return ARGV[1]`)

func newClient(t *testing.T) (*redis.Client, *batcher, gate) {
	c := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	t.Cleanup(func() { _ = c.Close() })
	if err := echo.Load(t.Context(), c).Err(); err != nil {
		t.Fatal(err)
	}
	g := gate{came: make(chan int, 100), open: make(chan struct{})}
	b := &batcher{client: c}
	c.AddHook(b)
	c.AddHook(g)
	return c, b, g
}

// await waits until so many calls wait for the next batch.
func (b *batcher) await(t *testing.T, n int) {
	t.Helper()
	for stop := time.Now().Add(2 * time.Minute); ; <-time.After(time.Millisecond) { // nothing reports it
		b.mu.Lock()
		waiting := len(b.waiting)
		b.mu.Unlock()
		if waiting == n {
			return
		}
		if time.Now().After(stop) {
			t.Fatalf("%d calls wait, not %d", waiting, n)
		}
	}
}

func TestCallsThatComeAtOnceTravelTogether(t *testing.T) {
	t.Parallel()
	c, b, g := newClient(t)
	var all sync.WaitGroup
	call := func(word string) {
		all.Go(func() {
			got, err := echo.Run(t.Context(), c, nil, word).Text()
			if word == "fail" {
				if err == nil || !strings.HasPrefix(err.Error(), "NO it fails") {
					t.Errorf("the script that fails: %v", err)
				}
				return
			}
			if err != nil || got != word {
				t.Errorf("%s: answered %q, %v", word, got, err)
			}
		})
	}
	for i := range lanes {
		call(fmt.Sprint("first", i))
		if n := <-g.came; n != 1 {
			t.Errorf("the first calls are %d in a batch", n)
		}
	}
	for i := range 20 {
		call(fmt.Sprint("later", i))
	}
	call("fail")
	b.await(t, 21)
	close(g.open)
	all.Wait()
	if n := <-g.came; n != 21 {
		t.Errorf("%d of 21 calls are in the next batch", n)
	}
	if len(g.came) > 0 {
		t.Error("there was one batch more")
	}
}

// A caller that gives up should return at once, and commands without a waiting caller should not be sent.
func TestCallThatIsGivenUp(t *testing.T) {
	t.Parallel()
	c, b, g := newClient(t)
	var all sync.WaitGroup
	for range lanes {
		all.Go(func() { _ = echo.Run(t.Context(), c, nil, "x").Err() })
		<-g.came
	}
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := make(chan error)
	go func() { gone <- echo.Run(ctx, c, nil, "given up").Err() }()
	b.await(t, 1)
	cancel(why)
	if err := <-gone; !errors.Is(err, why) {
		t.Errorf("err = %v, want %v", err, why)
	}
	all.Go(func() {
		if got, err := echo.Run(t.Context(), c, nil, "kept").Text(); err != nil || got != "kept" {
			t.Errorf("answered %q, %v", got, err)
		}
	})
	b.await(t, 2)
	close(g.open)
	all.Wait()
	if n := <-g.came; n != 1 {
		t.Errorf("%d calls were sent, one was given up", n)
	}
}

// A script that Redis does not know is sent in full, by itself.
func TestUnknownScript(t *testing.T) {
	t.Parallel()
	c, _, g := newClient(t)
	close(g.open)
	if got, err := redis.NewScript(`return 'new'`).Run(t.Context(), c, nil).Text(); err != nil || got != "new" {
		t.Errorf("answered %q, %v", got, err)
	}
}
