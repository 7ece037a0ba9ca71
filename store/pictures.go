package store

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// Pictures holds the pictures that came with tasks.
type Pictures struct {
	*conn
	values *values
}

const (
	// maxPictures bounds the pictures of one task, in bytes.
	maxPictures = 8 << 20
	// unsubmitted is how long pictures live whose task is not submitted.
	unsubmitted = time.Hour
)

// Save stores the pictures of a task before the task is submitted. It can be repeated, and changes nothing once the
// task exists. The pictures live for an hour after the last Save, and with a task until Retention after its final
// message is posted. Save returns [ErrTooLarge] beyond 8 MiB in all.
func (s *Pictures) Save(ctx context.Context, id string, data [][]byte) error {
	size := 0
	for _, d := range data {
		size += len(d)
	}
	if size > maxPictures {
		return fmt.Errorf("save pictures of %s: %d bytes, limit %d: %w", id, size, maxPictures, ErrTooLarge)
	}
	r, err := s.run(ctx, "savepictures", id, unsubmitted.Milliseconds())
	if err != nil || r.text(0) == "ok" {
		return wrapf(err, "save pictures of %s", id)
	}
	args := []any{id, unsubmitted.Milliseconds()}
	for i, d := range data {
		value, err := s.values.keep(ctx, picture, id, d)
		if err != nil {
			return fmt.Errorf("save pictures of %s: %w", id, err)
		}
		args = append(args, i, value)
	}
	_, err = s.run(ctx, "savepictures", args...)
	return wrapf(err, "save pictures of %s", id)
}

// Read returns what Save stored, in the same order, or nothing if it has expired.
func (s *Pictures) Read(ctx context.Context, id string) ([][]byte, error) {
	fields, err := s.redis.HGetAll(ctx, s.key("pictures", id)).Result()
	if err != nil {
		return nil, fmt.Errorf("read pictures of %s: %w", id, err)
	}
	var data [][]byte
	for i := range len(fields) {
		picture, err := s.values.fetch(ctx, fields[strconv.Itoa(i)])
		if err != nil {
			return nil, fmt.Errorf("read pictures of %s: %w", id, err)
		}
		data = append(data, picture)
	}
	return data, nil
}
