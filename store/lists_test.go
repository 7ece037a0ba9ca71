package store

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// An entry of a list stays until it is removed. One that cannot be read counts as well.
func TestLists(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		list, ada, ben := s.Paused, Halt{"Ada L.", time.Unix(2e9, 0).UTC()}, Halt{By: "Ben"}
		h.ok(list.Save(ctx, "saved", ben))
		h.ok(list.Save(ctx, "saved", ada))
		h.ok(list.Add(ctx, "added", ada))
		h.ok(list.Add(ctx, "added", ben))
		h.ok(h.rdb.HSet(ctx, "errand:paused", "unreadable", "7 Ada").Err())
		h.ok(s.Cordoned.Save(ctx, "saved", ben))
		want := map[string]Halt{"saved": ada, "added": ada, "unreadable": {}}
		if diff := cmp.Diff(want, must(list.All(ctx))); diff != "" {
			h.Error(diff)
		}
		for name, one := range want {
			if got := must(list.Read(ctx, name)); got != one {
				h.Errorf("%s: %v", name, got)
			}
			for _, found := range []bool{true, false} {
				if removed := must(list.Remove(ctx, name)); removed != found {
					h.Errorf("%s: removed %t, want %t", name, removed, found)
				}
			}
			if _, err := list.Read(ctx, name); !errors.Is(err, ErrNotFound) {
				h.Errorf("%s: %v", name, err)
			}
		}
		if all := must(s.Cordoned.All(ctx)); len(all) != 1 {
			h.Errorf("the other list has %v", all)
		}
	})
}

// A login counts for one user at a time, however it is spelled.
func TestLinksHaveOneUserEach(t *testing.T) {
	onBoth(t, func(h *harness) {
		s := h.store(Config{})
		save := func(user, login, until string) error {
			return s.Links.Link(h.Context(), user, login,
				json.RawMessage(`{"login":"`+login+`","until":"`+until+`"}`))
		}
		later := time.Now().Add(time.Hour).UTC().Format(time.RFC3339Nano)
		h.ok(h.rdb.HSet(h.Context(), "errand:links", "unreadable", "[").Err())
		h.ok(save("old", "Ann", time.Now().Add(-time.Hour).UTC().Format(time.RFC3339Nano)))
		h.ok(save("a", "ann", later))
		h.ok(save("a", "Ann", later))
		if err := save("b", "ANN", later); !errors.Is(err, ErrStale) {
			h.Errorf("a second user: %v", err)
		}
		h.ok(save("b", "bob", later))
		if _, err := s.Links.Remove(h.Context(), "a"); err != nil {
			h.Error(err)
		}
		h.ok(save("b", "ann", later))
	})
}
