package store

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Pictures come back in their order, and are gone as soon as the task's record is.
func TestPictures(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		id := h.put(s, task(1))[0]
		data := [][]byte{[]byte("one"), {0, 1, 255}}
		h.ok(s.SavePictures(ctx, id, data))
		if diff := cmp.Diff(data, must(s.Pictures(ctx, id))); diff != "" {
			h.Error(diff)
		}
		if none, err := s.Pictures(ctx, task(2).ID); err != nil || none != nil {
			h.Errorf("%v, %v", none, err)
		}
		if err := s.SavePictures(ctx, id, [][]byte{make([]byte, maxPictures), {1}}); !errors.Is(err, ErrTooLarge) {
			h.Errorf("%v", err)
		}
		h.ok(must(s.Claim(ctx, id, 0, "w")).End(ctx, nil))
		post, _, err := s.TakeOutbox(ctx, id)
		h.ok(err)
		h.ok(s.Posted(ctx, post))
		if ttl := s.redis.PTTL(ctx, s.key.pictures(id)).Val(); ttl <= 0 || ttl > s.cfg.Retention {
			h.Errorf("kept for %s", ttl)
		}
	})
}
