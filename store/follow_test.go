package store

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/await"
)

// subscribed waits until new events have n subscriptions.
func (h *harness) subscribed(n int64) {
	h.Helper()
	ctx := await.Context(h)
	for got := int64(-1); got != n; {
		subs, err := h.rdb.PubSubNumSub(ctx, "errand:news").Result()
		if err != nil {
			h.Fatalf("%d subscriptions, want %d: %v", got, n, err)
		}
		got = subs["errand:news"]
	}
}

// submitTo submits task n to a thread and returns its ID.
func (h *harness) submitTo(s *Store, n int, thread string) string {
	h.Helper()
	rec := task(n)
	rec.Thread = thread
	rec, _, err := s.Submit(h.Context(), rec)
	h.ok(err)
	return rec.ID
}

// All followers share one subscription, and nothing is left after the last one.
func TestFollowersShareOneSubscription(t *testing.T) {
	onBoth(t, func(h *harness) {
		s := h.store(Config{})
		s.Events.news.poll = time.Hour // only by hints
		ctx, stop := context.WithCancel(h.Context())
		a, b := h.claim(s, h.submitTo(s, 1, "a")), h.claim(s, h.submitTo(s, 2, "b"))
		h.ok(a.Append(ctx, event(1)))
		var all []*following
		for range 20 {
			all = append(all, follow(ctx, s, a.ID(), ""))
		}
		other := follow(ctx, s, b.ID(), "")
		for _, f := range all {
			f.want(h, `{"n":1}`)
		}
		h.ok(b.Append(ctx, event(2)))
		other.want(h, `{"n":2}`)
		h.subscribed(1)
		h.ok(a.Append(ctx, event(3)))
		for _, f := range all {
			f.want(h, `{"n":3}`)
		}
		h.ok(a.Append(ctx, event(4)))
		for _, f := range all {
			f.want(h, `{"n":4}`)
		}
		h.subscribed(1)
		h.ok(b.End(ctx, nil))
		other.want(h, "end")
		other.over(h, nil)
		stop()
		for _, f := range all {
			f.over(h, context.Canceled)
		}
		h.subscribed(0)

		again := follow(h.Context(), s, a.ID(), "")
		again.want(h, `{"n":1}`, `{"n":3}`, `{"n":4}`)
		h.ok(a.Append(h.Context(), event(5)))
		again.want(h, `{"n":5}`)
	})
}

func TestSlowFollowerHoldsUpNobody(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		c := h.claim(s, h.submit(s, 1))
		h.ok(c.Append(ctx, event(0)))
		reading, goOn, done := make(chan struct{}), make(chan struct{}), make(chan []string)
		go func() {
			var got []string
			for e, err := range s.Events.Follow(ctx, c.ID(), "") {
				if err != nil {
					got = append(got, err.Error())
				} else {
					got = append(got, texts([]Event{e})...)
				}
				if len(got) == 2 { // by now it waits for hints
					close(reading)
					<-goOn
				}
			}
			done <- got
		}()
		h.subscribed(1)
		fast := follow(ctx, s, c.ID(), "")
		fast.want(h, `{"n":0}`)
		want := []string{`{"n":0}`}
		for n := 1; n <= 40; n++ {
			h.ok(c.Append(ctx, event(n)))
			fast.want(h, string(event(n))) // while the other one is stopped
			want = append(want, string(event(n)))
			if n == 1 {
				<-reading
			}
		}
		h.ok(c.End(ctx, nil))
		fast.want(h, "end")
		fast.over(h, nil)
		close(goOn)
		if got := <-done; !slices.Equal(got, append(want, "end")) {
			h.Errorf("the slow one got %v", got)
		}
	})
}

// Followers read while the run writes, and get each event once.
func TestFollowersOfARunThatWrites(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		want := []string{`{"n":1}`, `{"n":2}`, `{"n":3}`, "end"}
		var all sync.WaitGroup
		for n := range 30 {
			id := h.submitTo(s, n, fmt.Sprint(n))
			for range 4 {
				all.Go(func() {
					if got, err := collect(ctx, s, id); err != nil || !slices.Equal(got, want) {
						h.Errorf("followed %v, %v", got, err)
					}
				})
			}
			c := h.claim(s, id)
			h.ok(c.Append(ctx, event(1)))
			h.ok(c.Append(ctx, event(2), event(3)))
			h.ok(c.End(ctx, nil))
		}
		all.Wait()
	})
}

func collect(ctx context.Context, s *Store, id string) (got []string, err error) {
	for e, err := range s.Events.Follow(ctx, id, "") {
		if err != nil {
			return got, err
		}
		got = append(got, texts([]Event{e})...)
	}
	return got, nil
}

// An invented ID far ahead, as a browser may send it, should affect only its own follower.
func TestFollowerFromTheFuture(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		c := h.claim(s, h.submit(s, 1))
		h.ok(c.Append(ctx, event(1)))
		ahead := follow(ctx, s, c.ID(), "99999999999999-0")
		h.subscribed(1)
		f := follow(ctx, s, c.ID(), "")
		f.want(h, `{"n":1}`)
		for n := 2; n <= 4; n++ {
			h.ok(c.Append(ctx, event(n)))
			f.want(h, string(event(n)))
		}
		h.ok(c.End(ctx, nil))
		f.want(h, "end")
		f.over(h, nil)
		ahead.over(h, nil)
	})
}

// Hints may be lost with their connection; events are not.
func TestFollowOutlivesItsSubscription(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx := h.Context()
		far, p := h.behindProxy(Config{})
		s := h.store(Config{Blocking: far.redis})
		c := h.claim(s, h.submit(s, 1))
		f := follow(ctx, s, c.ID(), "")
		h.subscribed(1)
		h.ok(c.Append(ctx, event(1)))
		f.want(h, `{"n":1}`)
		p.setCut(true)
		h.ok(c.Append(ctx, event(2)))
		f.want(h, `{"n":2}`)
		p.setCut(false)
		h.ok(c.Append(ctx, event(3)))
		f.want(h, `{"n":3}`)
		h.ok(c.End(ctx, nil))
		f.want(h, "end")
		f.over(h, nil)

		gone := h.submit(s, 2)
		f = follow(ctx, s, gone, "")
		h.subscribed(1)
		h.ok(h.rdb.Del(ctx, "errand:task:"+gone).Err())
		f.over(h, ErrNotFound)
	})
}

func TestFollowEndsWithoutRedis(t *testing.T) {
	onBoth(t, func(h *harness) {
		s, p := h.behindProxy(Config{})
		c := h.claim(s, h.submit(s, 1))
		f := follow(h.Context(), s, c.ID(), "")
		h.ok(c.Append(h.Context(), event(1)))
		f.want(h, `{"n":1}`)
		p.setCut(true)
		<-f.done
		if f.err == nil {
			h.Error("it ended without an error")
		}
	})
}
