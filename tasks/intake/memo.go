package intake

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/errand-fleet/errand/tasks"
)

// Memory keeps JSON values under names for all processes of the fleet, for some weeks after the last change.
type Memory interface {
	// Memo reads a value; nil if there is none.
	Memo(ctx context.Context, name string) (json.RawMessage, error)
	// ChangeMemo replaces a value by what change returns; nil leaves it as it is. change may be called several times if others write
	// meanwhile.
	ChangeMemo(ctx context.Context, name string, change func(json.RawMessage) (json.RawMessage, error)) error
}

// Memo is one value in a Memory. A value that cannot be read is logged and counts as the zero value.
type Memo[T any] struct {
	Memory Memory
	Name   string
	Log    *slog.Logger
}

// Load reads the value; the zero value if there is none.
func (m Memo[T]) Load(ctx context.Context) (value T, err error) {
	body, err := m.Memory.Memo(ctx, m.Name)
	if err != nil {
		return value, fmt.Errorf("read memo %s: %w", m.Name, err)
	}
	tasks.ReadMemo(m.Log, m.Name, body, &value)
	return value, nil
}

// Change changes the value and writes it, even if it is the same, so that it is kept for some more weeks. An error of change leaves the
// value as it is and is returned.
func (m Memo[T]) Change(ctx context.Context, change func(*T) error) error {
	err := m.Memory.ChangeMemo(ctx, m.Name, func(old json.RawMessage) (json.RawMessage, error) {
		var value T
		tasks.ReadMemo(m.Log, m.Name, old, &value)
		if err := change(&value); err != nil {
			return nil, err
		}
		return json.Marshal(value)
	})
	if err != nil {
		return fmt.Errorf("change memo %s: %w", m.Name, err)
	}
	return nil
}
