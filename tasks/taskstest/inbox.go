package taskstest

import (
	"context"
	"errors"
	"sync"

	"github.com/errand-fleet/errand/tasks/intake"
)

// Inbox is an inbox that interprets an event before it accepts it, and does not accept what would be tried again. The
// zero value is ready to use.
type Inbox struct {
	mu       sync.Mutex
	handlers map[string]intake.Handler
	outcomes map[string]string
	refusal  error
}

// Refuse makes Accept return an error for every event, until Refuse is called with nil.
func (b *Inbox) Refuse(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refusal = err
}

// Handle sets the handler for the events of a source.
func (b *Inbox) Handle(source string, h intake.Handler) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.handlers == nil {
		b.handlers, b.outcomes = map[string]intake.Handler{}, map[string]string{}
	}
	b.handlers[source] = h
}

// Accept interprets an event.
func (b *Inbox) Accept(ctx context.Context, e intake.Event) error {
	b.mu.Lock()
	h, refusal := b.handlers[e.Source], b.refusal
	b.mu.Unlock()
	if refusal != nil {
		return refusal
	}
	outcome, err := h(context.WithoutCancel(ctx), e)
	if errors.Is(err, intake.ErrUnreadable) {
		outcome, err = err.Error(), nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.outcomes[e.ID] = outcome
	return err
}

// Outcome returns what became of the event with an ID.
func (b *Inbox) Outcome(id string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.outcomes[id]
}
