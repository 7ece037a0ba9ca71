package store

import (
	"encoding/json"
	"errors"
	"testing"
	"time"
)

// An entry of a list stays until it is removed.
func TestLists(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, c := h.Context(), h.store(Config{}).conn
		list, other := &List{c, "l"}, &List{c, "other"}
		for _, body := range []string{`1`, `2`} {
			h.ok(list.Save(ctx, "a", json.RawMessage(body)))
		}
		h.ok(other.Save(ctx, "a", json.RawMessage(`3`)))
		if all := must(list.All(ctx)); len(all) != 1 || all["a"] != `2` {
			h.Errorf("entries %v", all)
		}
		for _, want := range []bool{true, false} {
			if found := must(list.Remove(ctx, "a")); found != want {
				h.Errorf("removed %t, want %t", found, want)
			}
		}
		if all := must(other.All(ctx)); len(all) != 1 {
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
		h.ok(s.Links.Save(h.Context(), "unreadable", json.RawMessage(`[`)))
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
