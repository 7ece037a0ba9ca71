package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Memos holds what sources remember between tasks, and the rates that they share.
type Memos struct {
	*conn
	life time.Duration // of a memo since its last change
}

// memo is a note that a source keeps between tasks, for example about a pull request.
type memo struct {
	body json.RawMessage // nil if no memo exists
	rev  int64           // increases with every change; 0 if no memo exists
}

const maxMemo = 256 << 10

// Memo reads the note under a name. It returns nil if nothing was written for SessionTTL or the key holds something
// else.
func (s *Memos) Memo(ctx context.Context, name string) (json.RawMessage, error) {
	m, err := s.memo(ctx, name)
	return m.body, err
}

func (s *Memos) memo(ctx context.Context, name string) (memo, error) {
	values, err := s.redis.HMGet(ctx, s.key("memo", name), "body", "rev").Result()
	if wrongType(err) {
		return memo{}, nil
	}
	if err != nil {
		return memo{}, fmt.Errorf("read memo %s: %w", name, err)
	}
	body, _ := values[0].(string)
	digits, _ := values[1].(string)
	rev, err := strconv.ParseUint(digits, 10, 49) // setmemo.lua accepts as many digits
	if err != nil {
		return memo{}, nil //nolint:nilerr // not a memo
	}
	return memo{body: raw(body), rev: int64(rev)}, nil
}

// setMemo replaces revision rev of a memo. It returns [ErrStale] if the revision has changed meanwhile.
func (s *Memos) setMemo(ctx context.Context, name string, rev int64, body json.RawMessage) error {
	if len(body) > maxMemo {
		return fmt.Errorf("write memo %s: %d bytes, limit %d: %w", name, len(body), maxMemo, ErrTooLarge)
	}
	_, err := s.run(ctx, "setmemo", s.key("memo", name), rev, []byte(body), s.life.Milliseconds())
	return wrapf(err, "write memo %s", name)
}

// changeTries bounds how often ChangeMemo starts over because of concurrent changes.
const changeTries = 10

var errContended = errors.New("others keep changing it")

// ChangeMemo reads a memo (nil if it does not exist), calls change and writes the result. It starts over if another
// process changed the memo meanwhile. If change returns nil, the memo stays as it is. ChangeMemo returns change's
// error, and [ErrTooLarge] beyond 256 KiB.
func (s *Memos) ChangeMemo(
	ctx context.Context, name string, change func(json.RawMessage) (json.RawMessage, error),
) error {
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

// Allow is a rate limiter that the fleet shares under a name: one turn per interval, and up to burst turns at once
// after a pause. It does not block. It returns 0 if it took a turn, and otherwise the time until the next turn.
func (s *Memos) Allow(
	ctx context.Context, name string, every time.Duration, burst int,
) (wait time.Duration, err error) {
	r, err := s.run(ctx, "allow", name, every.Microseconds(), max(burst, 1))
	return time.Duration(r.number(1)) * time.Microsecond, wrapf(err, "take a turn of %s", name)
}
