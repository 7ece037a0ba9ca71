package store

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// What is shelved is due once, for one at a time, until somebody says that it is done with.
func TestShelf(t *testing.T) {
	onBoth(t, func(h *harness) {
		s := h.store(Config{})
		shelve := func(id, body string, after time.Duration, fresh bool) {
			h.Helper()
			if got, err := s.Shelf.Shelve(h.Context(), id, []byte(body), after); err != nil || got != fresh {
				h.Errorf("shelve %s: %v, %v", id, got, err)
			}
		}
		taken := func(id, body string) {
			h.Helper()
			if gotID, got, err := s.Shelf.TakeShelved(h.Context()); err != nil || gotID != id || string(got) != body {
				h.Errorf("took %q, %s, %v; want %q, %s", gotID, got, err, id, body)
			}
		}
		taken("", "")
		shelve("a", `"1"`, time.Microsecond, true)
		shelve("b", `"2"`, time.Hour, true)
		shelve("c", `"3"`, 0, true)
		shelve("a", `"new"`, time.Hour, false)
		taken("a", `"new"`)
		taken("", "") // somebody has it
		if err := s.redis.ZAdd(h.Context(), s.key.shelf(), redis.Z{Score: 1, Member: "a"}).Err(); err != nil {
			h.Fatal(err)
		}
		taken("a", `"new"`) // he did not finish
		if err := errors.Join(s.Shelf.Unshelve(h.Context(), "a"), s.Shelf.Unshelve(h.Context(), "a")); err != nil {
			h.Error(err)
		}
		if body, err := s.Shelf.Shelved(h.Context(), "a"); err != nil || body != nil {
			h.Errorf("what is done with: %s, %v", body, err)
		}
		if body, err := s.Shelf.Shelved(h.Context(), "c"); err != nil || string(body) != `"3"` {
			h.Errorf("what is never due: %s, %v", body, err)
		}
		// One that was not decided about within its life leaves nothing.
		if err := errors.Join(s.redis.Del(h.Context(), s.key.shelved("b")).Err(), s.redis.ZAdd(h.Context(), s.key.shelf(), redis.Z{Score: 1, Member: "b"}).Err()); err != nil {
			h.Fatal(err)
		}
		taken("", "")
		if _, err := s.Shelf.Shelve(h.Context(), "d", make([]byte, maxShelvedBody+1), 0); !errors.Is(err, ErrTooLarge) {
			h.Errorf("too large: %v", err)
		}
		for i := range maxShelved {
			shelve(fmt.Sprint("x", i), "1", 100*time.Hour, true)
		}
		if body, err := s.Shelf.Shelved(h.Context(), "c"); err != nil || body != nil {
			h.Errorf("the first to go stays: %s, %v", body, err)
		}
	})
}

func TestFavourite(t *testing.T) {
	onBoth(t, func(h *harness) {
		s := h.store(Config{})
		for _, what := range []string{"", "acme/api", "acme/web"} {
			if what != "" {
				h.ok(s.Shelf.Prefer(h.Context(), "slack/T1/C1", what))
			}
			if got, err := s.Shelf.Favourite(h.Context(), "slack/T1/C1"); err != nil || got != what {
				h.Errorf("favourite %q, %v; want %q", got, err, what)
			}
		}
	})
}
