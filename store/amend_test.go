package store

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Only a task that has not started can be amended.
func TestAmend(t *testing.T) {
	onBoth(t, func(h *harness) {
		s := h.store(Config{})
		first, second := task(1), task(2)
		for _, rec := range []*Record{&first, &second} {
			rec.Topic = json.RawMessage(`{"latest":"` + rec.ID + `"}`)
			_, _, err := s.Submit(h.Context(), *rec)
			h.ok(err)
		}
		amended := func(rec Record) Record {
			rec.Task, rec.MergeKey, rec.Scopes, rec.Topic = json.RawMessage(`{"n":2}`), "merge_key", []string{"user:a"},
				json.RawMessage(`{"latest":"`+rec.ID+`","x":1}`)
			return rec
		}
		h.ok(s.Amend(h.Context(), amended(first), "1"))
		if got := string(must(s.Threads.Topic(h.Context(), "t"))); got != string(second.Topic) {
			h.Errorf("the topic of a later task became %s", got)
		}
		h.ok(s.Amend(h.Context(), amended(second), "1"))
		if got := string(must(s.Threads.Topic(h.Context(), "t"))); got != string(amended(second).Topic) {
			h.Errorf("the topic stayed %s", got)
		}
		got := must(s.Get(h.Context(), first.ID))
		if got.MergeKey != "merge_key" || string(got.Task) != `{"n":2}` || !cmp.Equal(got.Scopes, []string{"user:a"}) ||
			got.State != Waiting {
			h.Errorf("amended: %+v", got)
		}

		refused := func(what string, rec Record, want error) {
			h.Helper()
			before := h.dump()
			if err := s.Amend(h.Context(), rec, "1"); !errors.Is(err, want) {
				h.Errorf("%s: %v, want %v", what, err, want)
			}
			if diff := cmp.Diff(before, h.dump()); diff != "" {
				h.Errorf("%s changed something:\n%s", what, diff)
			}
		}
		refused("unknown", amended(task(9)), ErrNotFound)
		later := amended(second)
		later.Task = json.RawMessage(`{"n":3}`)
		h.ok(s.Amend(h.Context(), later, "2"))
		refused("changed since", amended(second), ErrStale)
		h.ok(s.Amend(h.Context(), later, "2"))
		c := h.claim(s, first.ID)
		refused("running", amended(first), ErrBegun)
		h.ok(c.Return(h.Context(), Wait{Counts: true}))
		refused("begun", amended(first), ErrBegun)
		must(s.Cancel(h.Context(), second.ID, "ann", "user"))
		refused("cancelled", amended(second), ErrEnded)
		must(s.EndWaiting(h.Context(), second.ID, json.RawMessage(`{}`)))
		refused("ended", amended(second), ErrEnded)
		large := amended(first)
		large.Task = make([]byte, maxTask+1)
		refused("too large", large, ErrTooLarge)
	})
}

func TestWithdraw(t *testing.T) {
	onBoth(t, func(h *harness) {
		s := h.store(Config{})
		first, second := h.submit(s, 1), h.submit(s, 2)
		c := h.claim(s, first)
		for _, state := range []State{Running, Waiting} {
			if done := must(s.Withdraw(h.Context(), first, json.RawMessage(`{}`))); done ||
				must(s.Get(h.Context(), first)).State != state {
				h.Errorf("withdrawn although it was begun and is %s", state)
			}
			if state == Running {
				h.ok(c.Return(h.Context(), Wait{Counts: true}))
			}
		}
		if !must(s.Withdraw(h.Context(), second, json.RawMessage(`{}`))) ||
			must(s.Get(h.Context(), second)).State != Ended {
			h.Error("not withdrawn")
		}
		if must(s.Withdraw(h.Context(), second, json.RawMessage(`{}`))) {
			h.Error("withdrawn twice")
		}
	})
}
