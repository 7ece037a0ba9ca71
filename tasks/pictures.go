package tasks

import (
	"context"
	"errors"
	"fmt"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
)

// Picture is an image that came with a prompt.
type Picture struct {
	Name string `json:"name"` // file name
	Type string `json:"type"` // see agent.PictureType
	Data []byte `json:"-"`    // set by a source for Submit
}

// NewPicture checks an image that a person sent. An *InputError says why it cannot be used.
func NewPicture(name string, data []byte) (Picture, error) {
	kind := agent.PictureType(data)
	if kind == "" {
		return Picture{}, &InputError{Sentence: fmt.Sprintf("%q cannot be shown to the model: send a whole PNG, JPEG or GIF image of at most 50 megapixels and 20 MB.", name)}
	}
	return Picture{Name: name, Type: kind, Data: data}, nil
}

// savePictures stores the pictures of a task that is about to be submitted.
func (d *Desk) savePictures(ctx context.Context, t Task) error {
	if len(t.Pictures) == 0 {
		return nil
	}
	if len(t.Pictures) > agent.MaxPictures {
		return &InputError{Sentence: fmt.Sprintf("A message has at most %d pictures.", agent.MaxPictures)}
	}
	var data [][]byte
	for _, p := range t.Pictures {
		data = append(data, p.Data)
	}
	err := d.store.Pictures.Save(ctx, t.ID, data)
	if errors.Is(err, store.ErrTooLarge) {
		return &InputError{Sentence: "The pictures of a message have at most 8 MB together."}
	}
	return err
}

// dropPictures removes the pictures again if the task was refused or was an answer. After any other error it keeps
// them, because the sender tries again.
func (d *Desk) dropPictures(ctx context.Context, t Task, r Receipt, err error) {
	_, refused := errors.AsType[*InputError](err)
	if len(t.Pictures) == 0 || !refused && !r.Answered {
		return
	}
	if err := d.store.Pictures.Drop(ctx, t.ID); err != nil {
		d.log.Warn("drop pictures", "run", t.ID, "err", err) // they expire
	}
}
