package intake

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"strings"
	"time"

	"github.com/errand-fleet/errand/tasks"
)

// Memory keeps JSON values under names for all processes of the fleet, for some weeks after the last change.
type Memory interface {
	// Memo reads a value, or nil.
	Memo(ctx context.Context, name string) (json.RawMessage, error)
	// ChangeMemo replaces a value by what change returns; nil leaves it as it is. change may be called several times if
	// others write meanwhile.
	ChangeMemo(ctx context.Context, name string, change func(json.RawMessage) (json.RawMessage, error)) error
}

// Memo is one value in a Memory. A value that cannot be read is logged and counts as the zero value.
type Memo[T any] struct {
	Memory Memory
	Name   string
	Log    *slog.Logger
}

// Load reads the value, or the zero value.
func (m Memo[T]) Load(ctx context.Context) (value T, err error) {
	body, err := m.Memory.Memo(ctx, m.Name)
	if err != nil {
		return value, fmt.Errorf("read memo %s: %w", m.Name, err)
	}
	tasks.ReadMemo(m.Log, m.Name, body, &value)
	return value, nil
}

// Change changes the value and writes it, even if it is the same, so that it is kept for some more weeks. An error of
// change leaves the value as it is and is returned.
func (m Memo[T]) Change(ctx context.Context, change func(*T) error) error {
	err := m.Memory.ChangeMemo(ctx, m.Name, func(old json.RawMessage) (json.RawMessage, error) {
		var value T
		tasks.ReadMemo(m.Log, m.Name, old, &value)
		if err := change(&value); err != nil {
			return nil, err
		}
		body, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("encode: %w", err)
		}
		return keepUnknown(old, body, reflect.TypeFor[T]()), nil
	})
	if err != nil {
		return fmt.Errorf("change memo %s: %w", m.Name, err)
	}
	return nil
}

// keepUnknown adds to a changed object the members of the old one that are no fields of t. A newer version wrote them,
// and reads them again after an upgrade.
func keepUnknown(old, changed json.RawMessage, t reflect.Type) json.RawMessage {
	var before, after map[string]json.RawMessage
	if t.Kind() != reflect.Struct || json.Unmarshal(old, &before) != nil || json.Unmarshal(changed, &after) != nil {
		return changed
	}
	for _, field := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		name = cmp.Or(name, field.Name)
		maps.DeleteFunc(before, func(member string, _ json.RawMessage) bool { return strings.EqualFold(member, name) })
	}
	if len(before) == 0 {
		return changed
	}
	maps.Copy(before, after)
	all, err := json.Marshal(before)
	if err != nil {
		return changed
	}
	return all
}

// Limiter is a set of token buckets that the whole fleet shares.
type Limiter interface {
	// Allow takes a token from the bucket with a name, which gains one token per every and holds at most burst. It does
	// not block: a wait of 0 means that a token was taken; anything else is how long until there is one.
	Allow(ctx context.Context, name string, every time.Duration, burst int) (wait time.Duration, err error)
}

// How fast one asker may send requests. People stay below these limits; two bots that answer each other do not.
const (
	requestEvery = 30 * time.Second
	requestBurst = 20
	noticeEvery  = 10 * time.Minute
)

// TooFast is said once to an asker whose requests are skipped.
const TooFast = "Too many requests in this thread; I skipped this one. Try again in a minute."

// Pacer limits how fast requests come. The zero value limits nothing.
type Pacer struct{ Limiter Limiter }

// AllowRequest reports whether the asker with that name may make one more request now.
func (p Pacer) AllowRequest(ctx context.Context, asker string) (bool, error) {
	return p.allow(ctx, asker, requestEvery, requestBurst)
}

// AllowNotice reports whether to say that requests come too fast: once every 10 minutes under a name.
func (p Pacer) AllowNotice(ctx context.Context, name string) (bool, error) {
	return p.allow(ctx, name, noticeEvery, 1)
}

func (p Pacer) allow(ctx context.Context, name string, every time.Duration, burst int) (bool, error) {
	if p.Limiter == nil {
		return true, nil
	}
	wait, err := p.Limiter.Allow(ctx, name, every, burst)
	if err != nil {
		return false, fmt.Errorf("pace requests: %w", err)
	}
	return wait == 0, nil
}
