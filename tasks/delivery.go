package tasks

import (
	"context"
	"errors"
	"regexp"

	"github.com/errand-fleet/errand/store"
)

// redelivery is the form of a delivery's ID that is not the task's first (deliveryID).
var redelivery = regexp.MustCompile(`^(.+)\.r[1-9][0-9]*$`)

// delivered finds the task of a delivery. A task's own ID may end as a redelivery's does, so it is looked for first. With an error comes
// the ID that was looked for last.
func delivered(ctx context.Context, s *store.Store, delivery string) (id string, err error) {
	id = delivery
	_, err = s.Get(ctx, id)
	if again := redelivery.FindStringSubmatch(delivery); errors.Is(err, store.ErrNotFound) && again != nil {
		id = again[1]
		_, err = s.Get(ctx, id)
	}
	return id, err
}

// Delivered tells which task a delivery belongs to, by the delivery's ID in the queue; ErrNotFound when there is none, or no more.
func (d *Desk) Delivered(ctx context.Context, delivery string) (id string, err error) {
	if id, err = delivered(ctx, d.store, delivery); err != nil {
		return "", d.notFound(id, err)
	}
	return id, nil
}
