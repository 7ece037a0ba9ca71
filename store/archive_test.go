package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/store/objects"
)

// eventIDs returns the IDs and data of events without the end mark.
func (h *harness) eventIDs(events []Event) (ids []string) {
	for _, e := range events {
		if !e.End {
			ids = append(ids, e.ID+" "+string(e.Data))
		}
	}
	return ids
}

// allEvents follows a task from an event to its end.
func (h *harness) allEvents(s *Store, id, after string) (events []Event) {
	h.Helper()
	for e, err := range s.Events.Follow(h.Context(), id, after) {
		h.ok(err)
		events = append(events, e)
	}
	return events
}

// Archived events read the same as those of the stream: while it still exists, when it has expired, and after a retry
// that adds to them.
func TestArchive(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{EventCap: 50})
		id := h.put(s, kin(1))[0]
		run := func(n, delivery int) {
			h.Helper()
			c := must(s.Claim(ctx, id, delivery, "w"))
			for i := range n {
				h.ok(c.Append(ctx, json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))))
			}
			h.ok(c.SaveLog(ctx, "log", []byte("text")))
			if err := s.Events.Archive(ctx, id); !errors.Is(err, ErrStale) {
				h.Errorf("while it runs: %v", err)
			}
			h.ok(c.End(ctx, json.RawMessage(`1`)))
			h.ok(c.Release(ctx))
			p, ok, err := s.Outbox.Take(ctx, id)
			if h.ok(err); !ok {
				h.Fatal("nothing to post")
			}
			h.ok(s.Outbox.MarkPosted(ctx, p))
		}
		check := func(want []string) {
			h.Helper()
			if got := h.eventIDs(h.allEvents(s, id, "")); !slices.Equal(got, want) {
				h.Errorf("followed %d events, want %d", len(got), len(want))
			}
			middle, _, _ := strings.Cut(want[len(want)/2], " ")
			if got := h.eventIDs(h.allEvents(s, id, middle)); !slices.Equal(got, want[len(want)/2+1:]) {
				h.Errorf("from the middle: %d events", len(got))
			}
			var got []string
			before := ""
			for more := true; more; {
				var page []Event
				var err error
				page, more, err = s.Events.ReadBefore(ctx, id, before, 7)
				h.ok(err)
				got = append(h.eventIDs(page), got...)
				before = page[0].ID
			}
			if !slices.Equal(got, want) {
				h.Errorf("paged back through %d events, want %d", len(got), len(want))
			}
		}
		run(20, 0)
		want := h.eventIDs(h.allEvents(s, id, ""))
		h.ok(s.Events.Archive(ctx, id))
		h.ok(s.Events.Archive(ctx, id)) // it can be repeated
		check(want)
		h.lapse("errand:events:"+id, streamLife)
		check(want)
		if parts := must(s.Log(ctx, id, "log")); len(parts) != 1 || string(parts[0].Data) != "text" {
			h.Errorf("the log: %v", parts)
		}

		must(s.Retry(ctx, id, nil))
		if left := must(h.rdb.TTL(ctx, "errand:log:"+id).Result()); left > 0 {
			h.Errorf("the archive of a task that is retried expires in %s", left)
		}
		run(20, 1)
		again := h.eventIDs(h.allEvents(s, id, ""))
		if len(again) <= len(want)+20-1 || !slices.Equal(again[:len(want)], want) {
			h.Errorf("after a retry %d events, before %d", len(again), len(want))
		}
		h.ok(s.Events.Archive(ctx, id))
		h.lapse("errand:events:"+id, streamLife)
		check(again)

		must(s.Retry(ctx, id, nil))
		run(20, 2) // more than the cap in all
		h.ok(s.Events.Archive(ctx, id))
		h.lapse("errand:events:"+id, streamLife)
		if got := h.allEvents(s, id, ""); len(got) > 50 || len(got) < 45 {
			h.Errorf("%d events are kept", len(got))
		}
	})
}

// Events that no other machine could read stay in their stream.
func TestArchiveIsReadableEverywhere(t *testing.T) {
	onMini(t, func(h *harness) {
		h.archives(true, 1)
		h.empty()
		h.archives(false, 0)
	})
}

func (h *harness) archives(shared bool, want int64) {
	ctx, s := h.Context(), h.store(Config{Objects: must(objects.OpenDir(h.TempDir(), shared))})
	id := h.put(s, kin(1))[0]
	c := h.claim(s, id)
	for range 200 {
		h.ok(c.Append(ctx, must(json.Marshal(noise(10<<10)))))
	}
	h.ok(c.End(ctx, json.RawMessage(`1`)))
	h.ok(c.Release(ctx))
	p, _, err := s.Outbox.Take(ctx, id)
	h.ok(err)
	h.ok(s.Outbox.MarkPosted(ctx, p))
	h.ok(s.Events.Archive(ctx, id))
	if n := must(h.rdb.Exists(ctx, "errand:log:"+id).Result()); n != want {
		h.Errorf("shared %t: %d archives", shared, n)
	}
}
