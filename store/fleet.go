package store

import (
	"context"
	"errors"
	"maps"
	"slices"
)

// ErrOtherFleet means that the data in Redis belongs to another fleet.
var ErrOtherFleet = errors.New("this Redis belongs to another fleet")

// Join says which fleet this process belongs to, in parts such as "slack", and returns the identity of the fleet that
// the data in Redis belongs to. It returns that and [ErrOtherFleet] if a part has another value there. Parts that are
// not known there yet are added: a fleet may get another source later, and data that has no identity is adopted.
func (s *Doctor) Join(ctx context.Context, parts map[string]string) (known map[string]string, err error) {
	var args []any
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		args = append(args, name, parts[name])
	}
	r, err := s.run(ctx, "join", args...)
	if err != nil {
		return nil, wrapf(err, "join the fleet")
	}
	known = map[string]string{}
	for i := 1; i+1 < len(r); i += 2 {
		known[r.text(i)] = r.text(i + 1)
	}
	if r.text(0) == "no" {
		return known, ErrOtherFleet
	}
	return known, nil
}
