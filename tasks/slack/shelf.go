package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/errand-fleet/errand/tasks"
)

// Shelf keeps, for all front doors, requests of which somebody has to say which repository they are about.
type Shelf interface {
	// Shelve keeps one under the ID of its task. It is due after that time, 0: never. fresh is false when it was there already: then it has the
	// new body, and is due when it was.
	Shelve(ctx context.Context, id string, body json.RawMessage, after time.Duration) (fresh bool, err error)
	// Shelved reads one, nil if there is none.
	Shelved(ctx context.Context, id string) (body json.RawMessage, err error)
	// TakeShelved gives one that is due to one front door at a time, an empty ID when none is.
	TakeShelved(ctx context.Context) (id string, body json.RawMessage, err error)
	// Unshelve removes one.
	Unshelve(ctx context.Context, id string) error
}

// Favourites remembers what was chosen last in a channel.
type Favourites interface {
	Prefer(ctx context.Context, place, what string) error
	Favourite(ctx context.Context, place string) (what string, err error)
}

// How long somebody has to choose another repository than the favourite, and how often a front door looks whose time is over.
const (
	hesitation = time.Minute
	lookEvery  = 5 * time.Second
)

// maxRequest keeps a request within what a shelf takes.
const maxRequest = 48 << 10

// shelved is a request that waits for a repository.
type shelved struct {
	Task       tasks.Task `json:"task"`
	Candidates []string   `json:"candidates"`
	Favourite  string     `json:"favourite,omitempty"`
}

// undecided is the mistake of a request that does not say which repository it is about. Where nobody can choose, it is told as any other.
type undecided struct {
	candidates []string
	told       error
}

func (u *undecided) Error() string { return u.told.Error() }
func (u *undecided) Unwrap() error { return u.told }

// offer keeps a request and lets who asked choose. The one that was used last in the channel is taken if he does not.
func (s *Source) offer(ctx context.Context, t tasks.Task, open *undecided) (after func(context.Context), _ error) {
	if s.cfg.Shelf == nil || s.cfg.Favourites == nil {
		return nil, open
	}
	o, err := originOf(t)
	if err != nil {
		return nil, err
	}
	r := shelved{Task: t, Candidates: open.candidates}
	if r.Favourite, err = s.cfg.Favourites.Favourite(ctx, o.place()); err != nil {
		return nil, err
	}
	var patience time.Duration
	if slices.Contains(r.Candidates, r.Favourite) {
		patience = s.hesitation
	} else {
		r.Favourite = ""
	}
	body, err := json.Marshal(r)
	switch {
	case err != nil:
		return nil, fmt.Errorf("marshal request %s: %w", t.ID, err)
	case len(body) > maxRequest:
		return nil, open
	}
	fresh, err := s.cfg.Shelf.Shelve(ctx, t.ID, body, patience)
	if err != nil || !fresh {
		return nil, err
	}
	s.log.Info("repository asked for", "run", t.ID, "thread", t.Thread, "favourite", r.Favourite)
	return func(ctx context.Context) {
		s.react(ctx, o, eyes)
		s.showPicker(ctx, o, r)
	}, nil
}

// place is the channel, as what is remembered of it is called.
func (o origin) place() string { return "slack/" + o.Team + "/" + o.Channel }

// decide lets a request start in a repository, empty for none. It is idempotent, as Submit is: whoever decides first has decided.
func (s *Source) decide(ctx context.Context, d *tasks.Desk, r shelved, repo string) (tasks.Receipt, error) {
	t := placed(r.Task, repo)
	t.Reply = new(tasks.Reply)
	receipt, err := d.Submit(ctx, t)
	if input := (*tasks.InputError)(nil); err == nil || errors.As(err, &input) {
		err = errors.Join(err, s.cfg.Shelf.Unshelve(ctx, t.ID))
	}
	if err == nil && receipt.New {
		s.queue(ctx, t, receipt)
	}
	return receipt, err
}

// placed is a request with the repository that was chosen for it, empty for none.
func placed(t tasks.Task, repo string) tasks.Task {
	if t.Repo = repo; repo == "" {
		t.Ref = ""
	}
	return t
}

// waits reports whether a request is not decided about. One whose words change meanwhile is kept with the new ones.
func (s *Source) waits(ctx context.Context, id string) (bool, error) {
	if s.cfg.Shelf == nil {
		return false, nil
	}
	body, err := s.cfg.Shelf.Shelved(ctx, id)
	return body != nil, err
}

// forget drops a request that is not decided about, if it is one.
func (s *Source) forget(ctx context.Context, id string) error {
	if s.cfg.Shelf == nil {
		return nil
	}
	return s.cfg.Shelf.Unshelve(ctx, id)
}

// prefer remembers the repository of a request, where there is a choice.
func (s *Source) prefer(ctx context.Context, t tasks.Task) {
	if s.cfg.Favourites == nil || t.Repo == "" || len(s.cfg.Repositories) < 2 || s.channel(t.Channel) != "" {
		return
	}
	o, err := originOf(t)
	if err != nil {
		return
	}
	if err := s.cfg.Favourites.Prefer(ctx, o.place(), t.Repo); err != nil && ctx.Err() == nil {
		s.log.Warn("remember repository", "channel", o.Channel, "err", err)
	}
}
