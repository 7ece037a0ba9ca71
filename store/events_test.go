package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func event(n int) json.RawMessage { return json.RawMessage(fmt.Sprintf(`{"n":%d}`, n)) }

// texts lists the events' data; "end" is the mark.
func texts(events []Event) []string {
	var all []string
	for _, e := range events {
		if e.End {
			all = append(all, "end")
		} else {
			all = append(all, string(e.Data))
		}
	}
	return all
}

func TestAppendKeepsOrderAndCap(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{EventCap: 3})
		c := h.claim(s, h.submit(s, 1))
		h.ok(c.Append(ctx))
		h.ok(c.Append(ctx, event(1)))
		h.ok(c.Append(ctx, event(2), event(3), event(4)))
		if got, want := texts(must(s.Events.Read(ctx, c.ID(), "", 0))), []string{
			`{"n":2}`, `{"n":3}`, `{"n":4}`,
		}; !slices.Equal(got, want) {
			h.Errorf("events %v, want %v", got, want)
		}
		largest := json.RawMessage(`"` + strings.Repeat("x", 16<<10-2) + `"`)
		h.ok(c.Append(ctx, largest))
		before := must(s.Events.Read(ctx, c.ID(), "", 0))
		if err := c.Append(ctx, event(5), append(largest, ' ')); !errors.Is(err, ErrTooLarge) {
			h.Errorf("append = %v, want %v", err, ErrTooLarge)
		}
		if after := must(s.Events.Read(ctx, c.ID(), "", 0)); len(after) != len(before) || after[2].ID != before[2].ID {
			h.Error("part of a refused batch was stored")
		}
		h.ok(c.End(ctx, nil))
		if err := c.Append(ctx, event(6)); !errors.Is(err, ErrStale) {
			h.Errorf("append after the end = %v, want %v", err, ErrStale)
		}
		if got := must(s.Events.Read(ctx, c.ID(), "", 0)); len(got) != 3 || !got[2].End {
			h.Errorf("events %v, want the end mark last", texts(got))
		}
	})
}

// Many events cannot be large ones: the newest of them have a few megabytes.
func TestEventsAreBoundedByBytes(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		c := h.claim(s, h.submit(s, 1))
		large := json.RawMessage(`"` + strings.Repeat("x", 16<<10-2) + `"`)
		for range 5 {
			h.ok(c.Append(ctx, slices.Repeat([]json.RawMessage{large}, 100)...))
			h.ok(c.Append(ctx, event(1)))
		}
		events := must(s.Events.Read(ctx, c.ID(), "", 5000))
		size := 0
		for _, e := range events {
			size += len(e.Data)
		}
		if size > 4<<20 || size < 4<<20-2*len(large) || string(events[len(events)-1].Data) != `{"n":1}` {
			h.Errorf("%d events of %d bytes, the last of them %.100s", len(events), size, events[len(events)-1].Data)
		}
	})
}

func TestEventsInPages(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		c := h.claim(s, h.submit(s, 1))
		for n := range 5 {
			h.ok(c.Append(ctx, event(n)))
		}
		for _, after := range []string{"", "0"} {
			var got []string
			for {
				page := must(s.Events.Read(ctx, c.ID(), after, 2))
				if len(page) == 0 {
					break
				}
				got = append(got, texts(page)...)
				after = page[len(page)-1].ID
			}
			if want := []string{`{"n":0}`, `{"n":1}`, `{"n":2}`, `{"n":3}`, `{"n":4}`}; !slices.Equal(got, want) {
				h.Errorf("pages %v, want %v", got, want)
			}
		}
		for _, bad := range []string{"x", "1", "1-", "-1", "1-2-3", "+", "(1-1"} {
			if _, err := s.Events.Read(ctx, c.ID(), bad, 0); err == nil {
				h.Errorf("%q passed as an event ID", bad)
			}
		}
		if got := must(s.Events.Read(ctx, "1700000000000009-none", "", 0)); len(got) != 0 {
			h.Errorf("no task has events %v", got)
		}
	})
}

func TestEventsBackwards(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		c := h.claim(s, h.submit(s, 1))
		for n := range 5 {
			h.ok(c.Append(ctx, event(n)))
		}
		h.ok(c.End(ctx, nil))
		before, pages := "", [][]string{{`{"n":4}`, "end"}, {`{"n":2}`, `{"n":3}`}, {`{"n":0}`, `{"n":1}`}}
		for i, want := range pages {
			page, more, err := s.Events.ReadBefore(ctx, c.ID(), before, 2)
			h.ok(err)
			if got := texts(page); !slices.Equal(got, want) || more != (i < 2) {
				h.Fatalf("before %q: %v and more: %t, want %v", before, got, more, want)
			}
			before = page[0].ID
		}
		if page, more, err := s.Events.ReadBefore(ctx, c.ID(), before, 2); err != nil || more || len(page) > 0 {
			h.Errorf("before the first: %v, more: %t, %v", texts(page), more, err)
		}
		if _, _, err := s.Events.ReadBefore(ctx, c.ID(), "+", 2); err == nil {
			h.Error("+ passed as an event ID")
		}
	})
}

// following reads a stream in the background.
type following struct {
	events signal[Event]
	err    error // read after done
	done   chan struct{}
}

func follow(ctx context.Context, s *Store, id, after string) *following {
	f := &following{events: make(signal[Event], 1000), done: make(chan struct{})}
	go func() {
		defer close(f.done)
		for e, err := range s.Events.Follow(ctx, id, after) {
			if err != nil {
				f.err = err
				continue // the sequence has to stop by itself
			}
			f.events.fire(e)
		}
	}()
	return f
}

// want waits for these events in order and returns the last ID.
func (f *following) want(h *harness, wants ...string) string {
	h.Helper()
	last := ""
	for _, want := range wants {
		e := f.events.wait(h)
		if got := texts([]Event{e})[0]; got != want {
			h.Errorf("event %s, want %s", got, want)
		}
		last = e.ID
	}
	return last
}

// over waits for the end of the sequence.
func (f *following) over(h *harness, want error) {
	h.Helper()
	<-f.done
	if !errors.Is(f.err, want) || len(f.events) > 0 {
		h.Errorf("it ended with %v and %d more events, want %v and none", f.err, len(f.events), want)
	}
}

func TestFollowHistoryThenLive(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		id := h.submit(s, 1)
		early := follow(ctx, s, id, "") // still waits
		c := h.claim(s, id)
		h.ok(c.Append(ctx, event(1), event(2)))
		last := early.want(h, `{"n":1}`, `{"n":2}`)
		late := follow(ctx, s, id, "0")
		late.want(h, `{"n":1}`, `{"n":2}`)
		resumed := follow(ctx, s, id, last)
		h.ok(c.Append(ctx, event(3)))
		for _, f := range []*following{early, late, resumed} {
			f.want(h, `{"n":3}`)
		}
		h.ok(c.End(ctx, nil))
		for _, f := range []*following{early, late, resumed} {
			last = f.want(h, "end")
			f.over(h, nil)
		}
		again := follow(ctx, s, id, "")
		again.want(h, `{"n":1}`, `{"n":2}`, `{"n":3}`, "end")
		again.over(h, nil)
		follow(ctx, s, id, last).over(h, nil) // nothing left, and nothing will come
	})
}

func TestFollowReadsMoreThanABatch(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		c := h.claim(s, h.submit(s, 1))
		for n := range 2*batch + 7 {
			h.ok(c.Append(ctx, event(n)))
		}
		h.ok(c.End(ctx, nil))
		f := follow(ctx, s, c.ID(), "")
		for n := range 2*batch + 7 {
			f.want(h, string(event(n)))
		}
		f.want(h, "end")
		f.over(h, nil)
	})
}

func TestFollowEnds(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		follow(ctx, s, "1700000000000009-none", "").over(h, ErrNotFound)

		id := h.submit(s, 1)
		stopped, stop := context.WithCancel(ctx)
		f := follow(stopped, s, id, "")
		stop()
		f.over(h, context.Canceled)

		c := h.claim(s, id)
		h.ok(c.Append(ctx, event(1)))
		for e, err := range s.Events.Follow(ctx, id, "") { // the caller stops
			if err != nil || e.End {
				h.Fatalf("%+v, %v", e, err)
			}
			break
		}
		if err := func() (last error) {
			for _, err := range s.Events.Follow(ctx, id, "no ID") {
				last = err
			}
			return last
		}(); err == nil {
			h.Error("a bad event ID was followed")
		}

		withdrawn := h.submit(s, 2)
		f = follow(ctx, s, withdrawn, "")
		must(s.EndWaiting(ctx, withdrawn, nil))
		f.want(h, "end")
		f.over(h, nil)
		h.ok(h.rdb.Del(ctx, "errand:events:"+withdrawn).Err()) // an ended task without its mark
		follow(ctx, s, withdrawn, "").over(h, nil)
	})
}

func TestFollowGoesOnAfterARetry(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		c := h.claim(s, h.submit(s, 1))
		h.ok(c.Append(ctx, event(1)))
		h.ok(c.End(ctx, nil))
		h.ok(c.Release(ctx))
		first := follow(ctx, s, c.ID(), "")
		last := first.want(h, `{"n":1}`, "end")
		first.over(h, nil)
		must(s.Retry(ctx, c.ID(), nil))
		whole, rest := follow(ctx, s, c.ID(), ""), follow(ctx, s, c.ID(), last)
		c = h.claim(s, c.ID())
		h.ok(c.Append(ctx, event(2)))
		h.ok(c.End(ctx, nil))
		whole.want(h, `{"n":1}`, `{"n":2}`, "end")
		whole.over(h, nil)
		rest.want(h, `{"n":2}`, "end")
		rest.over(h, nil)
	})
}
