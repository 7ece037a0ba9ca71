package store

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"testing"
	"time"
)

func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return b
}

func TestSessionRoundTrip(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		c := h.claim(s, h.submit(s, 1))
		if _, err := s.Threads.Session(ctx, "t"); !errors.Is(err, ErrNotFound) {
			h.Errorf("no session = %v, want %v", err, ErrNotFound)
		}
		for name, data := range map[string][]byte{
			"binary":      {0, 255, '\r', '\n', 0x80},
			"the largest": noise(8 << 20),
			"empty":       {},
		} {
			want := Session{ID: name, Meta: json.RawMessage(`{"dir":"` + name + `"}`), Data: data}
			h.ok(c.SaveSession(ctx, want))
			got, err := s.Threads.Session(ctx, "t")
			// Not cmp.Equal: byte by byte it takes minutes under -race.
			if err != nil || got.ID != want.ID || !bytes.Equal(got.Meta, want.Meta) ||
				!bytes.Equal(got.Data, want.Data) {
				h.Errorf("%s: came back as %s (%s) with %d bytes, %v", name, got.ID, got.Meta, len(got.Data), err)
			}
			if meta := must(s.Threads.SessionMeta(ctx, "t")); !bytes.Equal(meta, want.Meta) {
				h.Errorf("%s: the notes came back as %s", name, meta)
			}
		}
		h.ok(c.SaveSession(ctx, Session{ID: "small"}))
		if err := c.SaveSession(ctx, Session{ID: "no", Data: noise(8<<20 + 1)}); !errors.Is(err, ErrTooLarge) {
			h.Errorf("save = %v, want %v", err, ErrTooLarge)
		}
		if got := must(s.Threads.Session(ctx, "t")); got.ID != "small" {
			h.Errorf("a refused session replaced the last one by %s", got.ID)
		}
		h.lapse("errand:session:t", 30*24*time.Hour)
		if _, err := s.Threads.Session(ctx, "t"); !errors.Is(err, ErrNotFound) {
			h.Errorf("expired session = %v, want %v", err, ErrNotFound)
		}
		if _, err := s.Threads.SessionMeta(ctx, "t"); !errors.Is(err, ErrNotFound) {
			h.Errorf("notes of an expired session = %v, want %v", err, ErrNotFound)
		}
	})
}

func TestSessionAfterTheEnd(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		c := h.claim(s, h.submit(s, 1))
		h.ok(c.End(ctx, nil))
		h.ok(c.SaveSession(ctx, Session{ID: "after the end"})) // the claim is still held
		h.crash(c)
		next := h.claim(s, h.submit(s, 2))
		h.ok(next.SaveSession(ctx, Session{ID: "newer"}))
		h.ok(next.End(ctx, nil))
		h.ok(next.Release(ctx))
		if err := c.SaveSession(ctx, Session{ID: "older"}); !errors.Is(err, ErrStale) {
			h.Errorf("save = %v, want %v", err, ErrStale)
		}
		if got := must(s.Threads.Session(ctx, "t")); got.ID != "newer" {
			h.Errorf("session %s, want newer", got.ID)
		}
	})
}

func TestAlias(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		const slack, pr, review = "slack/T/C/1.2", "github/o/r#1", "github/o/r#1/review"
		resolves := func(name, want string) {
			h.Helper()
			if got, err := s.Threads.Resolve(ctx, name); err != nil || got != want {
				h.Errorf("%s stands for %s (%v), want %s", name, got, err, want)
			}
		}
		resolves(pr, pr)
		h.ok(s.Threads.Alias(ctx, pr, "slack/old"))
		h.ok(s.Threads.Alias(ctx, pr, slack)) // the latest wins
		resolves(pr, slack)
		resolves(slack, slack)
		h.ok(s.Threads.Alias(ctx, review, pr)) // an alias of an alias is still one hop
		resolves(review, slack)
		in := task(1)
		in.Thread = review
		if rec, _, err := s.Submit(ctx, in); err != nil || rec.Thread != slack {
			h.Errorf("submitted to %s, %v", rec.Thread, err)
		}
		if rec := must(s.Get(ctx, in.ID)); rec.Thread != slack {
			h.Errorf("stored in %s", rec.Thread)
		}
		if open := must(s.Threads.OpenTasks(ctx, slack)); len(open) != 1 {
			h.Errorf("%d tasks wait in the thread", len(open))
		}
		for _, name := range []string{slack, pr} {
			if err := s.Threads.Alias(ctx, slack, name); err == nil {
				h.Errorf("%s stands for itself by way of %s", slack, name)
			}
		}
		key := "errand:alias:" + pr
		h.ok(h.rdb.PExpire(ctx, key, time.Hour).Err())
		in = task(2)
		in.Thread = pr
		_, _, err := s.Submit(ctx, in)
		h.ok(err)
		if left := h.rdb.PTTL(ctx, key).Val(); left <= time.Hour {
			h.Errorf("an alias that was used lives for %s", left)
		}
		h.lapse(key, 30*24*time.Hour)
		resolves(pr, pr)
	})
}
