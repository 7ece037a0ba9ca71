package tasks

import (
	"context"
	"errors"
	"time"

	"github.com/errand-fleet/errand/store"
)

// Deaf is the same desk for a source that tells answers from tasks itself, and gives them to Reply: whatever is submitted is a task.
func (d *Desk) Deaf() *Desk {
	deaf := *d
	deaf.deaf = true
	return &deaf
}

// Reply is Answer by a message that would have that ID as a task. It will be none any more, however often it comes. known means that it was an
// answer before, and there is nothing else to know.
func (d *Desk) Reply(ctx context.Context, id, key, by, text, message string) (a Answer, known bool, err error) {
	a, err = d.answer(ctx, id, key, Answer{Text: text, By: by, At: time.Now(), Message: message})
	if errors.Is(err, store.ErrSpent) {
		return Answer{}, true, nil
	}
	return a, false, err
}
