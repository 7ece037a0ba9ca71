package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// explain gives a waiting task an event.
func (h *harness) explain(s *Store, id string, n int) {
	h.Helper()
	e := Explanation{Delivery: must(s.Get(h.Context(), id)).Delivery, Key: fmt.Sprint(n), Event: event(n)}
	if rec, _, err := s.Explain(h.Context(), id, e); err != nil || rec == nil {
		h.Fatalf("explain %d: %+v, %v", n, rec, err)
	}
}

// wantEvents compares what every reader returns of a task, and wants the IDs to ascend.
func (h *harness) wantEvents(s *Store, id string, want ...string) (all []Event) {
	h.Helper()
	for after := ""; ; {
		page := must(s.Events.Read(h.Context(), id, after, 1))
		if len(page) == 0 {
			break
		}
		if len(page) > 1 || !later(page[0].ID, after) {
			h.Fatalf("after %q: %+v", after, page)
		}
		all, after = append(all, page...), page[0].ID
	}
	if got := texts(all); !slices.Equal(got, want) {
		h.Errorf("read %v, want %v", got, want)
	}
	var backwards []Event
	for before, more := "", true; more; {
		page, m, err := s.Events.ReadBefore(h.Context(), id, before, 1)
		h.ok(err)
		if backwards = append(page, backwards...); len(page) > 0 {
			before = page[0].ID
		}
		more = m
	}
	if got := texts(backwards); !slices.Equal(got, want) {
		h.Errorf("read backwards %v, want %v", got, want)
	}
	return all
}

// streams returns how many streams there are.
func (h *harness) streams() int {
	return len(must(h.rdb.Keys(h.Context(), "errand:events:*").Result()))
}

// A task that waits has events without a stream. Readers do not notice when the stream begins: each event comes once,
// with the same ID, also to those that opened before.
func TestEventsBeforeTheStream(t *testing.T) {
	for name, begin := range map[string]func(h *harness, s *Store, id string) []string{
		"a run": func(h *harness, s *Store, id string) []string {
			c := h.claim(s, id)
			h.ok(c.Append(h.Context(), event(4), event(5)))
			h.ok(c.End(h.Context(), nil))
			return []string{`{"n":4}`, `{"n":5}`, "end"}
		},
		"a run without events": func(h *harness, s *Store, id string) []string {
			h.ok(h.claim(s, id).End(h.Context(), nil))
			return []string{"end"}
		},
		"an end without a run": func(h *harness, s *Store, id string) []string {
			must(s.EndWaiting(h.Context(), id, nil))
			return []string{"end"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(h *harness) {
				ctx, s := h.Context(), h.store(Config{})
				id := h.submit(s, 1)
				first := follow(ctx, s, id, "")
				h.explain(s, id, 1)
				first.want(h, `{"n":1}`)
				h.explain(s, id, 2)
				second := first.want(h, `{"n":2}`)
				h.explain(s, id, 3)
				before := h.wantEvents(s, id, `{"n":1}`, `{"n":2}`, `{"n":3}`)
				if n := h.streams(); n != 0 {
					h.Errorf("%d streams of a task that waits", n)
				}
				all, resumed := follow(ctx, s, id, "0"), follow(ctx, s, id, second)
				all.want(h, `{"n":1}`, `{"n":2}`, `{"n":3}`)
				first.want(h, `{"n":3}`)
				resumed.want(h, `{"n":3}`)

				rest := begin(h, s, id)
				for _, f := range []*following{first, all, resumed} {
					f.want(h, rest...)
					f.over(h, nil)
				}
				after := h.wantEvents(s, id, append(texts(before), rest...)...)
				if !slices.EqualFunc(after[:3], before, func(a, b Event) bool { return a.ID == b.ID }) {
					h.Errorf("IDs %v became %v", before, after[:3])
				}
				if fields := must(h.rdb.HExists(ctx, "errand:task:"+id, "early").Result()); fields || h.streams() != 1 {
					h.Errorf("in the record: %t, %d streams", fields, h.streams())
				}
				again := follow(ctx, s, id, second)
				again.want(h, append([]string{`{"n":3}`}, rest...)...)
				again.over(h, nil)
			})
		})
	}
}

// An absorbed task and a retried one keep what they had.
func TestEventsOfAbsorbedAndRetriedTasks(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		a, b := task(1), task(2)
		a.MergeKey, b.MergeKey = "k", "k"
		for _, r := range []Record{a, b} {
			if _, _, err := s.Submit(ctx, r); err != nil {
				h.Fatal(err)
			}
		}
		c := h.claim(s, a.ID)
		h.explain(s, b.ID, 1)
		f := follow(ctx, s, b.ID, "")
		f.want(h, `{"n":1}`)
		if _, _, err := c.Take(ctx, false, json.RawMessage(`"absorbed"`)); err != nil {
			h.Fatal(err)
		}
		f.want(h, `"absorbed"`)
		h.wantEvents(s, b.ID, `{"n":1}`, `"absorbed"`)
		h.ok(c.EndWith(ctx, nil, Covered{IDs: []string{b.ID}}))
		f.want(h, "end")
		f.over(h, nil)

		must(s.Retry(ctx, b.ID, nil))
		h.explain(s, b.ID, 2)
		h.explain(s, b.ID, 3)
		h.wantEvents(s, b.ID, `{"n":1}`, `"absorbed"`, `{"n":2}`, `{"n":3}`)
	})
}

// The events of a record are few. More of them begin the stream.
func TestManyEventsBeginTheStream(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		id, want := h.submit(s, 1), []string{}
		f := follow(ctx, s, id, "")
		for n := range 20 {
			text := fmt.Sprintf(`"%d%s"`, n, strings.Repeat("x", 200))
			if _, _, err := s.Explain(ctx, id, Explanation{Key: text, Event: json.RawMessage(text)}); err != nil {
				h.Fatal(err)
			}
			want = append(want, text)
			if began := h.streams() == 1; began != (n > 9) {
				h.Errorf("with %d events: stream %t", n+1, began)
			}
		}
		f.want(h, want...)
		h.wantEvents(s, id, want...)
	})
}

// The clock of Redis may go back, as after a fail-over.
func TestEventIDsDoNotGoBack(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		id := h.submit(s, 1)
		const ahead = 99999999999999
		h.ok(h.rdb.HSet(ctx, "errand:task:"+id, "early", fmt.Sprintf("%d-0 %s", ahead, event(1))).Err())
		f := follow(ctx, s, id, "")
		f.want(h, `{"n":1}`)
		h.explain(s, id, 2)
		f.want(h, `{"n":2}`)
		c := h.claim(s, id)
		h.ok(c.Append(ctx, event(3)))
		f.want(h, `{"n":3}`)
		h.wantEvents(s, id, `{"n":1}`, `{"n":2}`, `{"n":3}`)
	})
}

func entry(id string, n int) *redis.XAddArgs {
	at := time.Now().Add(time.Second).UnixMilli() // not in the millisecond of another event
	return &redis.XAddArgs{
		Stream: "errand:events:" + id, ID: fmt.Sprint(at, "-0"), Values: []string{"data", string(event(n))},
	}
}

// Workers of the release before have their own scripts, which do not move events.
func TestStreamOfTheReleaseBefore(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		h.ok(h.rdb.XAdd(ctx, entry(h.submit(s, 1), 1)).Err()) // it explained
		older := task(1).ID
		h.explain(s, older, 2)
		h.wantEvents(s, older, `{"n":1}`, `{"n":2}`)

		id := h.submit(s, 2)
		h.explain(s, id, 1)
		f := follow(ctx, s, id, "")
		f.want(h, `{"n":1}`)
		id2 := must(h.rdb.XAdd(ctx, entry(id, 2)).Result()) // it runs the task
		h.explain(s, id, 3)
		f.want(h, `{"n":2}`, `{"n":3}`)
		h.wantEvents(s, id, `{"n":1}`, `{"n":2}`, `{"n":3}`)
		must(s.EndWaiting(ctx, id, nil))
		f.want(h, "end")
		f.over(h, nil)
		late := follow(ctx, s, id, id2)
		late.want(h, `{"n":3}`, "end")
		h.wantEvents(s, id, `{"n":1}`, `{"n":2}`, `{"n":3}`, "end")

		p, ok, err := s.Outbox.Take(ctx, id)
		if err != nil || !ok {
			h.Fatalf("take: %t, %v", ok, err)
		}
		h.ok(s.Outbox.MarkPosted(ctx, p))
		h.ok(s.Events.Archive(ctx, id))
		h.ok(h.rdb.Del(ctx, "errand:events:"+id).Err())
		whole := follow(ctx, s, id, "")
		whole.want(h, `{"n":1}`, `{"n":2}`, `{"n":3}`)
		whole.over(h, nil)
	})
}

// Followers read while the stream begins.
func TestFollowersWhileTheStreamBegins(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		want := []string{`{"n":1}`, `{"n":2}`, `{"n":3}`, `{"n":4}`, "end"}
		var all sync.WaitGroup
		for n := range 30 {
			id := h.submitTo(s, n, fmt.Sprint(n))
			for range 4 {
				all.Go(func() {
					if got, err := collect(ctx, s, id); err != nil || !slices.Equal(got, want) {
						t.Errorf("followed %v, %v", got, err)
					}
				})
			}
			h.explain(s, id, 1)
			h.explain(s, id, 2)
			c := h.claim(s, id)
			h.ok(c.Append(ctx, event(3)))
			h.ok(c.Append(ctx, event(4)))
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
