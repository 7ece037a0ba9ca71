package store

import (
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"testing"
)

// A write replaces only the revision that was read.
func TestMemos(t *testing.T) {
	onBoth(t, func(h *harness) {
		s := h.store(Config{})
		if n, err := s.Memos.memo(h.Context(), "pr"); err != nil || n.body != nil || n.rev != 0 {
			h.Errorf("what was never written: %+v, %v", n, err)
		}
		for rev, body := range []string{`1`, `2`} {
			if err := s.Memos.setMemo(h.Context(), "pr", int64(rev), json.RawMessage(body)); err != nil {
				h.Error(err)
			}
		}
		if err := s.Memos.setMemo(h.Context(), "pr", 1, json.RawMessage(`3`)); !errors.Is(err, ErrStale) {
			h.Errorf("over another's: %v", err)
		}
		if n, err := s.Memos.memo(h.Context(), "pr"); err != nil || string(n.body) != `2` || n.rev != 2 {
			h.Errorf("got %+v, %v", n, err)
		}
		if ttl := s.redis.PTTL(h.Context(), s.key("memo", "pr")).Val(); ttl <= 0 || ttl > s.cfg.SessionTTL {
			h.Errorf("kept for %s", ttl)
		}
		if err := s.Memos.setMemo(h.Context(), "pr", 2, make([]byte, maxMemo+1)); !errors.Is(err, ErrTooLarge) {
			h.Errorf("too large: %v", err)
		}
	})
}

// An unreadable memo should count as missing and be overwritten.
func TestUnreadableMemo(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		h.ok(h.rdb.Set(ctx, "errand:memo:type", "x", 0).Err())
		names := []string{"type"}
		for _, rev := range []string{"x", "1.5", "1e3", "0x10", "inf", "-1", "99999999999999999999"} {
			h.ok(h.rdb.HSet(ctx, "errand:memo:"+rev, "rev", rev, "body", "7").Err())
			names = append(names, rev)
		}
		for _, name := range names {
			if body, err := s.Memos.Memo(ctx, name); err != nil || body != nil {
				h.Errorf("%s: %s, %v", name, body, err)
			}
			h.ok(s.Memos.ChangeMemo(ctx, name, func(json.RawMessage) (json.RawMessage, error) {
				return json.RawMessage(`1`), nil
			}))
			if body := must(s.Memos.Memo(ctx, name)); string(body) != `1` {
				h.Errorf("%s: then %s", name, body)
			}
		}
	})
}

// Concurrent changes are not lost.
func TestMemosAreChangedTogether(t *testing.T) {
	onBoth(t, func(h *harness) {
		s := h.store(Config{})
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				err := s.Memos.ChangeMemo(h.Context(), "n", func(b json.RawMessage) (json.RawMessage, error) {
					n, _ := strconv.Atoi(string(b))
					return json.RawMessage(strconv.Itoa(n + 1)), nil
				})
				if err != nil {
					h.Error(err)
				}
			})
		}
		wg.Wait()
		if n, err := s.Memos.memo(h.Context(), "n"); err != nil || string(n.body) != "5" {
			h.Errorf("got %+v, %v", n, err)
		}
		refused := errors.New("refused")
		for _, change := range []func(json.RawMessage) (json.RawMessage, error){
			func(json.RawMessage) (json.RawMessage, error) { return nil, refused },
			func(json.RawMessage) (json.RawMessage, error) { return nil, nil },
		} {
			if err := s.Memos.ChangeMemo(h.Context(), "n", change); err != nil && !errors.Is(err, refused) {
				h.Error(err)
			}
		}
		if n, err := s.Memos.memo(h.Context(), "n"); err != nil || n.rev != 5 {
			h.Errorf("changed nevertheless: %+v, %v", n, err)
		}
	})
}
