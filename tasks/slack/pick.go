package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/intake"
)

// pick starts the request that somebody has chosen a repository for.
func (s *Source) pick(ctx context.Context, d *tasks.Desk, p press) {
	s.attend(ctx, p, func(ctx context.Context) (string, error) {
		if s.cfg.Shelf == nil {
			return intake.Forgotten, nil
		}
		_, id, _ := strings.Cut(p.block, "/")
		body, err := s.cfg.Shelf.Shelved(ctx, id)
		if err != nil {
			return "", err
		}
		if body == nil {
			return s.picked(ctx, d, p, id)
		}
		var r shelved
		if err := json.Unmarshal(body, &r); err != nil {
			return "", fmt.Errorf("read request %s: %w", id, err)
		}
		if r.Task.Actor != p.origin.User || p.value != none && !slices.Contains(r.Candidates, p.value) {
			return intake.NotAllowed, nil
		}
		repo := p.value
		if repo == none {
			repo = ""
		}
		receipt, err := s.decide(ctx, d, r, repo)
		if input, ok := errors.AsType[*tasks.InputError](err); ok {
			return input.Sentence, nil
		}
		if err != nil {
			return "", err
		}
		if !receipt.New {
			return s.picked(ctx, d, p, id)
		}
		r.Task.Repo = repo
		s.prefer(ctx, r.Task)
		s.answerPicker(ctx, p, repo)
		return "", nil
	})
}

// picked says what has become of a request that is not to be decided about any more.
func (s *Source) picked(ctx context.Context, d *tasks.Desk, p press, id string) (string, error) {
	st, err := s.pressed(ctx, d, p, id)
	if err != nil {
		return "", err
	}
	return begun(st.Task.Repo) + " " + otherwise, nil
}
