package store

import "context"

// SetAside removes a task from the live tasks if its record is gone or so damaged that no step can use it. Its thread
// continues without it. SetAside returns [ErrStale] if the record is still usable.
func (s *Store) SetAside(ctx context.Context, id string) error {
	_, err := s.run(ctx, "setaside", id)
	return wrapf(err, "set aside %s", id)
}
