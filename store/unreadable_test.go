package store

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"
)

// spoilt are ways to make a record unreadable.
var spoilt = map[string]func(h *harness, id string){
	"another type": func(h *harness, id string) {
		h.rdb.Del(h.Context(), "errand:task:"+id)
		h.ok(h.rdb.Set(h.Context(), "errand:task:"+id, "x", 0).Err())
	},
	"no thread": func(h *harness, id string) { h.ok(h.rdb.HDel(h.Context(), "errand:task:"+id, "thread").Err()) },
	"no state":  func(h *harness, id string) { h.ok(h.rdb.HDel(h.Context(), "errand:task:"+id, "state").Err()) },
	"unknown state": func(h *harness, id string) {
		h.ok(h.rdb.HSet(h.Context(), "errand:task:"+id, "state", "x").Err())
	},
}

// An unreadable record should be reported and skipped in every list.
func TestUnreadableRecord(t *testing.T) {
	onBoth(t, func(h *harness) {
		for way, spoil := range spoilt {
			h.ok(h.rdb.FlushAll(h.Context()).Err())
			ctx, s := h.Context(), h.store(Config{})
			first, bad, last := h.ended(s, 1), h.ended(s, 2), h.submitTo(s, 3, "other")
			spoil(h, bad)
			if rec, err := s.Get(ctx, bad); err != nil || rec.Unreadable == "" {
				h.Errorf("%s: get: %+v, %v", way, rec, err)
			}
			page, err := s.List(ctx, ListQuery{})
			h.ok(err)
			var got []string
			for _, rec := range page.Records {
				got = append(got, rec.ID)
				if (rec.Unreadable != "") != (rec.ID == bad) {
					h.Errorf("%s: %s is unreadable: %q", way, rec.ID, rec.Unreadable)
				}
			}
			if !slices.Equal(got, []string{last, bad, first}) {
				h.Errorf("%s: listed %v", way, got)
			}
			for _, state := range []State{Waiting, Ended} {
				if _, err := s.List(ctx, ListQuery{State: state}); err != nil {
					h.Errorf("%s: list %s: %v", way, state, err)
				}
			}
			if _, err := s.Outbox.Backlog(ctx); err != nil {
				h.Errorf("%s: unposted: %v", way, err)
			}
			h.overdue(first)
			h.overdue(bad)
			for range 2 {
				if _, _, err := s.Outbox.Take(ctx, ""); err != nil {
					h.Errorf("%s: outbox: %v", way, err)
				}
			}
		}
	})
}

// A waiting task that is unreadable or gone does not block its thread.
func TestUnreadableTaskHoldsUpNoThread(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx := h.Context()
		ways := map[string]func(h *harness, id string){"removed": func(h *harness, id string) {
			h.rdb.Del(ctx, "errand:task:"+id)
		}}
		for _, way := range []string{"another type", "no thread"} {
			ways[way] = spoilt[way]
		}
		for way, spoil := range ways {
			h.ok(h.rdb.FlushAll(ctx).Err())
			s := h.store(Config{})
			bad, next := h.submit(s, 1), h.submit(s, 2)
			spoil(h, bad)
			live, _, err := s.LiveAfter(ctx, "", 10)
			if err != nil || len(live) != 2 || live[0].ID != bad || live[0].Unreadable == "" ||
				live[1].Unreadable != "" {
				h.Errorf("%s: live: %+v, %v", way, live, err)
			}
			if live := must(s.Live(ctx)); len(live) != 1 {
				h.Errorf("%s: live, readable: %+v", way, live)
			}
			if _, err := s.Claim(ctx, bad, 0, "w"); !errors.Is(err, ErrNotFound) {
				h.Errorf("%s: claimed: %v", way, err)
			}
			third := h.submit(s, 3)
			h.ok(s.SetAside(ctx, bad))
			if err := s.SetAside(ctx, next); !errors.Is(err, ErrStale) {
				h.Errorf("%s: a good one set aside: %v", way, err)
			}
			c := h.claim(s, next)
			h.ok(c.End(ctx, nil))
			h.ok(c.Release(ctx))
			h.claim(s, third)
			if live := must(h.rdb.ZRange(ctx, "errand:live", 0, -1).Result()); !slices.Equal(live, []string{third}) {
				h.Errorf("%s: live at last: %v", way, live)
			}
		}
	})
}

func TestUnreadableSession(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		h.ok(h.rdb.Set(ctx, "errand:session:t", "x", 0).Err())
		h.ok(h.rdb.HSet(ctx, "errand:topic:t", "x", 0).Err())
		if _, err := s.Threads.Session(ctx, "t"); !errors.Is(err, ErrDamaged) {
			h.Errorf("session: %v", err)
		}
		if _, err := s.Threads.Topic(ctx, "t"); !errors.Is(err, ErrDamaged) {
			h.Errorf("topic: %v", err)
		}
		h.ok(h.claim(s, h.submit(s, 1)).SaveSession(ctx, Session{ID: "new"}))
		if ses := must(s.Threads.Session(ctx, "t")); ses.ID != "new" {
			h.Errorf("%+v", ses)
		}
	})
}

// One worker's unreadable heartbeat hides no other worker, and one unreadable day no other costs.
func TestUnreadableHeartbeat(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		h.beat(s, Worker{ID: "a"})
		h.beat(s, Worker{ID: "b"})
		h.ok(h.rdb.Set(ctx, "errand:worker:a", "{", time.Minute).Err())
		workers := must(s.Workers.List(ctx))
		if len(workers) != 2 || workers[0].ID != "a" || !json.Valid(workers[0].Health) {
			h.Errorf("%+v", workers)
		}
		h.ok(h.rdb.Set(ctx, "errand:costs:20000", "x", 0).Err())
		for _, err := range s.Costs.Days(ctx, time.Unix(20000*86400, 0), time.Unix(20001*86400, 0)) {
			h.ok(err)
		}
	})
}
