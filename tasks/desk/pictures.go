package desk

import (
	"context"
	"errors"
	"fmt"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// savePictures stores the pictures of a task that is about to be submitted.
func (d *Desk) savePictures(ctx context.Context, t tasks.Task) error {
	if len(t.Pictures) == 0 {
		return nil
	}
	if len(t.Pictures) > agent.MaxPictures {
		return &tasks.InputError{Sentence: fmt.Sprintf("A message has at most %d pictures.", agent.MaxPictures)}
	}
	var data [][]byte
	for _, p := range t.Pictures {
		data = append(data, p.Data)
	}
	err := d.store.Pictures.Save(ctx, t.ID, data)
	if errors.Is(err, store.ErrTooLarge) {
		return &tasks.InputError{Sentence: "The pictures of a message have at most 8 MB together."}
	}
	return err
}
