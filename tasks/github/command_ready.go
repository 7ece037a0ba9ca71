package github

import (
	"context"
	"errors"

	"github.com/errand-fleet/errand/tasks"
)

// ready marks errand's draft as ready for review.
func (i *interpreter) ready(ctx context.Context, h remarkEvent) (note string, ok bool, err error) {
	err = tasks.FromForge(i.api.Forge.MarkReady(ctx, h.Repo, h.Number))
	if input, refused := errors.AsType[*tasks.InputError](err); refused {
		return input.Sentence, false, nil
	}
	return "", err == nil, err
}
