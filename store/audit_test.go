package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

func (h *harness) audit(s *Store, what string) {
	h.Helper()
	if _, err := s.Audit.Append(h.Context(), func(seq int64, at time.Time) ([]byte, error) {
		return json.Marshal(map[string]any{"seq": seq, "time": at, "what": what})
	}); err != nil {
		h.Fatal(err)
	}
}

// No byte of the log or of its chain can be changed without Verify noticing it, and neither can its length.
func TestAuditFindsEveryChangedByte(t *testing.T) {
	onMini(t, func(h *harness) { // a hash does not depend on who stores it
		s := h.store(Config{AuditCap: 20})
		const appended = 27
		for i := range appended {
			h.audit(s, fmt.Sprintf("cancel task %d", i))
		}
		intact := func() {
			h.Helper()
			if n, err := s.Audit.Verify(h.Context()); n != 20 || err != nil {
				h.Fatalf("%d entries, %v", n, err)
			}
		}
		intact()
		tampered := func(what string) {
			h.Helper()
			if _, err := s.Audit.Verify(h.Context()); !errors.As(err, new(*TamperedError)) {
				h.Errorf("%s: %v", what, err)
			}
		}
		r := rand.New(rand.NewPCG(1, 2))
		ctx, list, chain := h.Context(), s.key("audit"), s.key("auditchain")
		fields := []string{"seq", "head", "removed", "base"}
		for n := range 1000 {
			at := int64(n % (20 + len(fields)))
			var old string
			if at < 20 {
				old = h.rdb.LIndex(ctx, list, at).Val()
			} else {
				old = h.rdb.HGet(ctx, chain, fields[at-20]).Val()
			}
			changed, i := []byte(old), r.IntN(len(old))
			changed[i] ^= byte(1 + r.IntN(255))
			set := func(value string) {
				if at < 20 {
					h.rdb.LSet(ctx, list, at, value)
				} else {
					h.rdb.HSet(ctx, chain, fields[at-20], value)
				}
			}
			set(string(changed))
			tampered(fmt.Sprintf("byte %d of value %d: %q became %q", i, at, old, changed))
			set(old)
		}
		intact()
		last := h.rdb.RPop(ctx, list).Val()
		tampered("without the last")
		h.rdb.RPush(ctx, list, last)
		first := h.rdb.LPop(ctx, list).Val()
		tampered("without the first")
		h.rdb.LPush(ctx, list, first)
		h.rdb.RPush(ctx, list, last)
		tampered("one more")
		h.rdb.RPop(ctx, list)
		intact()
		h.rdb.Del(ctx, list)
		tampered("without all")
	})
}

// Several front doors append to one chain.
func TestAuditIsOneChain(t *testing.T) {
	onBoth(t, func(h *harness) {
		var doors sync.WaitGroup
		for door := range 4 {
			doors.Go(func() {
				s := h.store(Config{})
				for i := range 5 {
					h.audit(s, fmt.Sprintf("%d by door %d", i, door))
				}
			})
		}
		doors.Wait()
		s := h.store(Config{})
		if n, err := s.Audit.Verify(h.Context()); n != 20 || err != nil {
			h.Errorf("%d entries, %v", n, err)
		}
		list, err := s.Audit.List(h.Context(), 2, 3)
		for i, e := range list {
			var entry struct{ Seq int }
			if json.Unmarshal(e.Body, &entry) != nil || entry.Seq != 18-i {
				h.Errorf("entry %d: %s", i, e.Body)
			}
		}
		if len(list) != 3 || err != nil {
			h.Errorf("listed %d, %v", len(list), err)
		}
	})
}

// An entry whose request is repeated because the reply was lost is appended once.
func TestAuditEntryIsRepeated(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		h.audit(s, "the first")
		asked := 0
		appended, err := s.Audit.Append(ctx, func(seq int64, _ time.Time) ([]byte, error) {
			asked++
			body := []byte(fmt.Sprintf(`{"seq":%d}`, seq))
			head := h.rdb.HGet(ctx, "errand:auditchain", "head").Val()
			if _, err := s.Audit.run(ctx, "audit", head, link256(head, body), body, 100); err != nil {
				return nil, fmt.Errorf("append it the first time: %w", err)
			}
			return body, nil
		})
		if n, bad := s.Audit.Verify(ctx); err != nil || bad != nil || n != 2 || asked != 1 {
			h.Errorf("%d entries, asked %d times: %+v, %v, %v", n, asked, appended, err, bad)
		}
	})
}
