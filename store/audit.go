package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Audit holds what visitors of the front door changed.
type Audit struct {
	*conn
	most int // entries kept
}

// AuditEntry is an entry of the audit log.
type AuditEntry struct {
	Body json.RawMessage
	Hash string // of Body and the hash of the entry before
}

// TamperedError means that an entry of the audit log, or their number, is not what was appended.
type TamperedError struct {
	Seq int64 // the first entry that does not match; the first has 1
	Why string
}

func (e *TamperedError) Error() string { return fmt.Sprintf("audit entry %d: %s", e.Seq, e.Why) }

// auditTries bounds how often Append starts over because another process appended.
const auditTries = 50

// Append appends the entry that body returns for its number and the time of Redis' clock, and removes the oldest
// entries beyond Config.AuditCap. Entries form a chain of hashes, which Verify checks.
func (s *Audit) Append(ctx context.Context, body func(seq int64, at time.Time) ([]byte, error)) (AuditEntry, error) {
	for range auditTries {
		var chain *redis.SliceCmd
		var at *redis.TimeCmd
		if _, err := s.redis.Pipelined(ctx, func(p redis.Pipeliner) error {
			chain, at = p.HMGet(ctx, s.key("auditchain"), "head", "seq"), p.Time(ctx)
			return nil
		}); err != nil {
			return AuditEntry{}, fmt.Errorf("append audit entry: %w", err)
		}
		head, seq := reply(chain.Val()).text(0), reply(chain.Val()).number(1)
		b, err := body(int64(seq)+1, at.Val().UTC())
		if err != nil {
			return AuditEntry{}, fmt.Errorf("append audit entry: %w", err)
		}
		e := AuditEntry{Body: b, Hash: link256(head, b)}
		if _, err = s.run(ctx, "audit", head, e.Hash, b, s.most); errors.Is(err, ErrStale) {
			// go-redis repeats a lost request
			if now, _ := s.redis.HGet(ctx, s.key("auditchain"), "head").Result(); now != e.Hash {
				continue
			}
			err = nil
		}
		if err != nil {
			return AuditEntry{}, fmt.Errorf("append audit entry: %w", err)
		}
		return e, nil
	}
	return AuditEntry{}, fmt.Errorf("append audit entry: %w", errContended)
}

// link256 returns the hash of an entry that follows the one with the hash before.
func link256(before string, body []byte) string {
	sum := sha256.Sum256(append([]byte(before+"\n"), body...))
	return hex.EncodeToString(sum[:])
}

// List returns up to n entries, newest first, after leaving out the newest skip.
func (s *Audit) List(ctx context.Context, skip, n int) ([]AuditEntry, error) {
	lines, err := s.redis.LRange(ctx, s.key("audit"), int64(-skip-n), int64(-skip-1)).Result()
	if err != nil {
		return nil, fmt.Errorf("read audit log: %w", err)
	}
	var list []AuditEntry
	for _, line := range slices.Backward(lines) {
		hash, body, _ := strings.Cut(line, " ")
		list = append(list, AuditEntry{Body: raw(body), Hash: hash})
	}
	return list, nil
}

// Verify checks the chain of hashes from the oldest kept entry to the newest, and returns how many entries there are.
// The error is a *TamperedError if one was changed, removed or added. Someone who may write to Redis can replace all of
// the log: compare the last hash with the process log.
func (s *Audit) Verify(ctx context.Context) (n int, err error) {
	var state *redis.MapStringStringCmd
	var lines *redis.StringSliceCmd
	if _, err := s.redis.TxPipelined(ctx, func(p redis.Pipeliner) error {
		state, lines = p.HGetAll(ctx, s.key("auditchain")), p.LRange(ctx, s.key("audit"), 0, -1)
		return nil
	}); err != nil {
		return 0, fmt.Errorf("read audit log: %w", err)
	}
	chain := state.Val()
	number := func(field string) int64 {
		if chain[field] == "" {
			return 0
		}
		v, err := strconv.ParseInt(chain[field], 10, 64)
		if err != nil {
			v = -1
		}
		return v
	}
	removed, seq := number("removed"), number("seq")
	hash := chain["base"]
	for i, line := range lines.Val() {
		stored, body, _ := strings.Cut(line, " ")
		if hash = link256(hash, []byte(body)); hash != stored {
			return i, &TamperedError{removed + int64(i) + 1, "it or the one before was changed"}
		}
	}
	n = len(lines.Val())
	switch {
	case hash != chain["head"]:
		return n, &TamperedError{removed + int64(n), "it is not the last that was appended"}
	case removed < 0 || seq < 0 || removed+int64(n) != seq, (removed > 0) != (chain["base"] != ""):
		return n, &TamperedError{removed + int64(n), "the number of entries is wrong"}
	}
	return n, nil
}
