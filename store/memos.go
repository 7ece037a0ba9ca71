package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// memo is what a source remembers of something between its tasks, such as a pull request.
type memo struct {
	body json.RawMessage // nil: there is none
	rev  int64           // goes up with every change; 0: there is none
}

const maxMemo = 256 << 10

// Memo reads what was written under a name, nil where nothing was for SessionTTL, or what is there is no memo.
func (s *Memos) Memo(ctx context.Context, name string) (json.RawMessage, error) {
	m, err := s.memo(ctx, name)
	return m.body, err
}

func (s *Memos) memo(ctx context.Context, name string) (memo, error) {
	values, err := s.redis.HMGet(ctx, s.key.memo(name), "body", "rev").Result()
	if wrongType(err) {
		return memo{}, nil
	}
	if err != nil {
		return memo{}, fmt.Errorf("read memo %s: %w", name, err)
	}
	body, _ := values[0].(string)
	digits, _ := values[1].(string)
	rev, err := strconv.ParseUint(digits, 10, 49) // setmemo.lua takes as many digits
	if err != nil {
		return memo{}, nil //nolint:nilerr // no memo
	}
	return memo{body: raw(body), rev: int64(rev)}, nil
}

// setMemo writes one over that of revision rev. [ErrStale]: somebody else wrote meanwhile.
func (s *Memos) setMemo(ctx context.Context, name string, rev int64, body json.RawMessage) error {
	if len(body) > maxMemo {
		return fmt.Errorf("write memo %s: %d bytes, limit %d: %w", name, len(body), maxMemo, ErrTooLarge)
	}
	if _, err := s.run(ctx, "setmemo", s.key.memo(name), rev, []byte(body), s.cfg.SessionTTL.Milliseconds()); err != nil {
		return fmt.Errorf("write memo %s: %w", name, err)
	}
	return nil
}

// changeTries bounds how often ChangeMemo begins anew because somebody else wrote meanwhile.
const changeTries = 10

var errContended = errors.New("others keep changing it")

// ChangeMemo reads a memo (nil: there is none), lets change make of it what it should be, and writes that, again from the beginning while
// others do the same. A change that returns nil leaves it as it is; its error is returned. [ErrTooLarge] beyond 256 KiB.
func (s *Memos) ChangeMemo(ctx context.Context, name string, change func(json.RawMessage) (json.RawMessage, error)) error {
	for range changeTries {
		m, err := s.memo(ctx, name)
		if err != nil {
			return err
		}
		body, err := change(m.body)
		if err != nil || body == nil {
			return err
		}
		if err := s.setMemo(ctx, name, m.rev, body); !errors.Is(err, ErrStale) {
			return err
		}
	}
	return fmt.Errorf("write memo %s: %w", name, errContended)
}

// Allow is a rate limiter that the fleet shares under a name: one turn per interval, and up to burst turns at once after a pause. It does
// not block. It returns 0 if it took a turn, and otherwise the time until the next turn.
func (s *Memos) Allow(ctx context.Context, name string, every time.Duration, burst int) (wait time.Duration, err error) {
	r, err := s.run(ctx, "allow", name, every.Microseconds(), max(burst, 1))
	if err != nil {
		return 0, fmt.Errorf("take a turn of %s: %w", name, err)
	}
	return time.Duration(r.number(1)) * time.Microsecond, nil
}
