package store

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"
)

// responder answers in the background as a worker does, until the test ends.
func (h *harness) responder(s *Store, ready func() bool, answer func(context.Context, json.RawMessage) (json.RawMessage,
	time.Duration),
) {
	h.Helper()
	ctx, cancel := context.WithCancel(h.Context())
	var done sync.WaitGroup
	done.Go(func() {
		if err := s.Workers.Respond(ctx, "", ready, answer); !errors.Is(err, context.Canceled) {
			h.Errorf("Respond: %v", err)
		}
	})
	h.Cleanup(func() { cancel(); done.Wait() })
}

func always() bool { return true }

// One worker should answer. Others who ask the same in time should get that answer, and later ones a new one.
func TestInquiry(t *testing.T) {
	onBoth(t, func(h *harness) {
		s := h.store(Config{Refresh: 50 * time.Millisecond})
		var mu sync.Mutex
		answered := 0
		echo := func(_ context.Context, q json.RawMessage) (json.RawMessage, time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			answered++
			return json.RawMessage(`{"to":` + string(q) + `}`), time.Minute
		}
		for range 2 {
			h.responder(s, always, echo)
		}
		for range 3 {
			got, err := s.Workers.Inquire(h.Context(), "", "k", json.RawMessage(`"what?"`))
			if err != nil || string(got) != `{"to":"what?"}` {
				h.Errorf("%s, %v", got, err)
			}
		}
		h.lapse("errand:reply:k", time.Minute)
		if _, err := s.Workers.Inquire(h.Context(), "", "k", json.RawMessage(`"what now?"`)); err != nil {
			h.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		if answered != 2 {
			h.Errorf("answered %d times", answered)
		}
	})
}

// A worker that cannot answer should leave the question to others, and neither the caller nor the question should
// wait indefinitely.
func TestInquiryThatNobodyAnswers(t *testing.T) {
	onBoth(t, func(h *harness) {
		s := h.store(Config{Refresh: 10 * time.Millisecond})
		ctx, cancel := context.WithCancel(h.Context())
		defer cancel()
		h.responder(s, func() bool {
			if h.rdb.LLen(ctx, "errand:inquiries").Val() == 1 {
				cancel()
			}
			return false
		}, nil)
		if got, err := s.Workers.Inquire(ctx, "", "k", json.RawMessage(`1`)); !errors.Is(err, context.Canceled) {
			h.Errorf("%s, %v", got, err)
		}
		if n := h.rdb.LLen(h.Context(), "errand:inquiries").Val(); n != 0 {
			h.Errorf("%d questions are left", n)
		}
	})
}

// A question of a dead front door should expire.
func TestInquiryLapses(t *testing.T) {
	onBoth(t, func(h *harness) {
		s := h.store(Config{Refresh: 10 * time.Millisecond})
		ctx, leave := context.WithCancel(h.Context())
		lapsed := sync.OnceFunc(func() {
			h.lapse("errand:inquiries", inquiryTTL)
			leave()
		})
		h.responder(s, func() bool {
			if h.rdb.LLen(h.Context(), "errand:inquiries").Val() == 1 {
				lapsed()
			}
			return false
		}, nil)
		if got, err := s.Workers.Inquire(ctx, "", "k", json.RawMessage(`1`)); !errors.Is(err, context.Canceled) {
			h.Errorf("%s, %v", got, err)
		}
	})
}

// A conversation is read in order, whatever the states of its tasks.
func TestLatest(t *testing.T) {
	onBoth(t, func(h *harness) {
		s := h.store(Config{})
		talk := func(n int) Record {
			r := kin(n)
			r.Topic = json.RawMessage(`{}`)
			return r
		}
		ids := h.put(s, talk(1), talk(2), talk(3), kin(4))
		h.ok(h.claim(s, ids[0]).End(h.Context(), nil))
		got, err := s.Threads.LatestTasks(h.Context(), "t", 2)
		if err != nil || len(got) != 2 || got[0].ID != ids[1] || got[1].ID != ids[2] {
			h.Errorf("%+v, %v", got, err)
		}
		if all, err := s.Threads.LatestTasks(h.Context(), "t", 9); err != nil || len(all) != 3 ||
			all[0].State != Ended {
			h.Errorf("%+v, %v", all, err)
		}
		h.lapse("errand:thread:t", s.cfg.SessionTTL)
	})
}
