package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"time"
)

func TestCheckpointRoundTrip(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		id := h.submit(s, 1)
		c := h.claim(s, id)
		if _, err := s.Checkpoint(ctx, id); !errors.Is(err, ErrNotFound) {
			h.Errorf("no checkpoint = %v, want %v", err, ErrNotFound)
		}
		h.ok(c.SaveCheckpoint(ctx, Checkpoint{Session: Session{ID: "first", Data: noise(100)}, Work: noise(100)}))
		for name, p := range map[string]Checkpoint{
			"largest":    {Session: Session{Data: noise(1 << 20)}, Work: noise(7 << 20)},
			"no work":    {Session: Session{Data: noise(10)}},
			"no session": {Work: []byte{0, 255, '\r', '\n'}},
		} {
			p.Session.ID, p.Session.Meta = name, json.RawMessage(`{"a":1}`)
			h.ok(c.SaveCheckpoint(ctx, p))
			got, err := s.Checkpoint(ctx, id)
			if err != nil || got.Session.ID != name || string(got.Session.Meta) != `{"a":1}` ||
				!bytes.Equal(got.Session.Data, p.Session.Data) || !bytes.Equal(got.Work, p.Work) {
				h.Errorf("%s: came back as %s with %d and %d bytes, %v", name, got.Session.ID, len(got.Session.Data),
					len(got.Work), err)
			}
			if rec := must(s.Get(ctx, id)); got.At.Before(rec.Started) {
				h.Errorf("saved at %s, the run started at %s", got.At, rec.Started)
			}
		}
		h.ok(c.SaveCheckpoint(ctx, Checkpoint{Session: Session{ID: "last"}}))
		if err := c.SaveCheckpoint(ctx, Checkpoint{
			Session: Session{Data: noise(1)}, Work: noise(MaxCheckpoint),
		}); !errors.Is(err, ErrTooLarge) {
			h.Errorf("save = %v, want %v", err, ErrTooLarge)
		}
		if got := must(s.Checkpoint(ctx, id)); got.Session.ID != "last" {
			h.Errorf("a refused checkpoint replaced the last one by %s", got.Session.ID)
		}
		h.lapse("errand:checkpoint:"+id, 30*24*time.Hour)
	})
}

// If any part differs, the whole checkpoint is damaged.
func TestDamagedCheckpoint(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		id := h.submit(s, 1)
		c := h.claim(s, id)
		saved := func() string {
			h.ok(c.SaveCheckpoint(ctx, Checkpoint{Session: Session{
				ID: "id", Meta: json.RawMessage(`{"a":1}`), Data: []byte("data"),
			}, Work: []byte("work")}))
			must(s.Checkpoint(ctx, id))
			return must(h.rdb.HGet(ctx, "errand:checkpoint:"+id, "body").Result())
		}
		damaged := []string{
			"", "x", "z", "ono/such/object", saved() + "x", string(must(s.values.keep(ctx, "", "", nil))),
			string(must(s.values.keep(ctx, "", "", []byte("\x05data")))),
		}
		for i := range saved() {
			body := []byte(saved())
			body[i] ^= 1
			damaged = append(damaged, string(body), string(body[:i]))
		}
		for _, body := range damaged {
			h.ok(h.rdb.HSet(ctx, "errand:checkpoint:"+id, "body", body).Err())
			got, err := s.Checkpoint(ctx, id)
			if err == nil && string(got.Session.Data) == "data" && string(got.Work) == "work" {
				continue // a bit without a meaning
			}
			if !errors.Is(err, ErrDamaged) || got.Session.Data != nil || got.Work != nil {
				h.Errorf("%q: %+v, %v; want %v", body, got, err, ErrDamaged)
			}
		}
	})
}

// A checkpoint outlives its worker but not its task: a task that was ended does not resume.
func TestCheckpointLivesAsLongAsItsTask(t *testing.T) {
	ends := map[string]func(h *harness, s *Store, c *Claim){
		"ended":     func(h *harness, _ *Store, c *Claim) { h.ok(c.End(h.Context(), nil)) },
		"withdrawn": func(h *harness, s *Store, c *Claim) { withdrawn(h, s, c) },
	}
	onBoth(t, func(h *harness) {
		for end, do := range ends {
			ctx := h.Context()
			h.empty()
			s := h.store(Config{})
			id := h.submit(s, 1)
			h.ok(h.claim(s, id).SaveCheckpoint(ctx, Checkpoint{Session: Session{ID: "a"}}))
			h.lapse("errand:claim:t", 15*time.Second)
			must(s.Requeue(ctx, id, 0, must(s.Get(ctx, id)).Fence, true))
			c := h.claim(s, id)
			h.ok(c.Return(ctx, Wait{}))
			c = h.claim(s, id)
			if got := must(s.Checkpoint(ctx, id)); got.Session.ID != "a" {
				h.Errorf("after a crash and a return: %+v", got)
			}
			if end == "withdrawn" {
				h.crash(c)
			}
			do(h, s, c)
			must(s.Retry(ctx, id, nil))
			if _, err := s.Checkpoint(ctx, id); !errors.Is(err, ErrNotFound) {
				h.Errorf("%s, then tried again: %v, want %v", end, err, ErrNotFound)
			}
			if keys := must(h.rdb.Keys(ctx, "*checkpoint*").Result()); len(keys) > 0 {
				h.Errorf("%s: left %v", end, keys)
			}
		}
	})
}
