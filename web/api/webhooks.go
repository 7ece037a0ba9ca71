package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/web/internal/respond"
)

// Webhooks tell other programs that tasks have ended.
type Webhooks interface {
	// Undelivered returns the deliveries that have failed.
	Undelivered(ctx context.Context) ([]tasks.Undelivered, error)
	// Replay sends one of them again. It returns [tasks.ErrNotFound] for any other.
	Replay(ctx context.Context, id string) error
}

// Undelivered is the response of GET /api/webhooks.
type Undelivered struct {
	Undelivered []tasks.Undelivered `json:"undelivered"`
}

// Replayed is the response of POST /api/webhooks/{id}/replay.
type Replayed struct {
	ID string `json:"id"`
}

func (a *API) undelivered(w http.ResponseWriter, r *http.Request) error {
	if err := a.mayDeliver(r); err != nil {
		return err
	}
	all, err := []tasks.Undelivered{}, error(nil)
	if a.Webhooks != nil {
		all, err = a.Webhooks.Undelivered(r.Context())
	}
	return a.send(w, Undelivered{all}, err)
}

func (a *API) replay(w http.ResponseWriter, r *http.Request) error {
	if err := a.mayDeliver(r); err != nil {
		return err
	}
	err := tasks.ErrNotFound
	if a.Webhooks != nil {
		err = a.Webhooks.Replay(r.Context(), r.PathValue("id"))
	}
	if errors.Is(err, tasks.ErrNotFound) {
		return respond.Error(http.StatusNotFound, "No such delivery", "No delivery with this ID has failed.")
	}
	return a.send(w, Replayed{r.PathValue("id")}, err)
}

// mayDeliver returns an error unless the visitor is an operator of the whole fleet: deliveries are of all repositories.
func (a *API) mayDeliver(r *http.Request) error {
	if tasks.VisitorOf(r.Context()).RoleIn(r.Context(), "") < tasks.Operator {
		return &tasks.RoleError{Sentence: "For the deliveries of webhooks you need the role operator " +
			"without a limit to repositories."}
	}
	return nil
}
