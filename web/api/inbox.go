package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/web/internal/respond"
)

// Inbox keeps what was sent to errand until it is interpreted, and deliveries of webhooks.
type Inbox interface {
	// Failed returns the events that have failed.
	Failed(ctx context.Context) ([]tasks.FailedEvent, error)
	// Replay tries one of them again. It returns [tasks.ErrNotFound] for any other.
	Replay(ctx context.Context, id string) error
}

// FailedEvents is the response of GET /api/inbox.
type FailedEvents struct {
	Events []tasks.FailedEvent `json:"events"`
}

// Replayed is the response of POST /api/inbox/{id}/replay.
type Replayed struct {
	ID string `json:"id"`
}

func (a *API) failedEvents(w http.ResponseWriter, r *http.Request) error {
	if err := people.VisitorOf(r.Context()).Operates(r.Context(), ""); err != nil {
		return err
	}
	list, err := a.Inbox.Failed(r.Context())
	return a.send(w, FailedEvents{list}, err)
}

func (a *API) replay(w http.ResponseWriter, r *http.Request) error {
	if err := people.VisitorOf(r.Context()).Operates(r.Context(), ""); err != nil {
		return err
	}
	err := a.Inbox.Replay(r.Context(), r.PathValue("id"))
	if errors.Is(err, tasks.ErrNotFound) {
		return respond.Error(http.StatusNotFound, "No such event", "No event with this ID has failed.")
	}
	return a.send(w, Replayed{r.PathValue("id")}, err)
}
