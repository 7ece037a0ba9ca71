package store

import "testing"

// The oldest is the one that ended first, not the one due first; those being posted should not be counted.
func TestUnposted(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		if u := must(s.Outbox.Backlog(ctx)); u != (Unposted{}) {
			h.Errorf("empty outbox: %+v", u)
		}
		first, second, third := h.ended(s, 1), h.ended(s, 2), h.ended(s, 3)
		h.overdue(second)
		want := must(s.Get(ctx, first)).Ended
		if u := must(s.Outbox.Backlog(ctx)); u.Endings != 3 || !u.Oldest.Equal(want) {
			h.Errorf("%+v, want 3 since %v", u, want)
		}
		p, _, err := s.Outbox.Take(ctx, first)
		h.ok(err)
		h.ok(s.Outbox.MarkPosted(ctx, p))
		h.rdb.Del(ctx, "errand:task:"+third) // since an unknown time
		want = must(s.Get(ctx, second)).Ended
		if u := must(s.Outbox.Backlog(ctx)); u.Endings != 2 || !u.Oldest.Equal(want) {
			h.Errorf("%+v, want 2 since %v", u, want)
		}
	})
}
