package intake

import (
	"context"
	"errors"
	"time"
)

// Event is something that another program has sent, as it came.
type Event struct {
	Source string // whose handler interprets it
	Kind   string // in the words of the source
	ID     string // the sender's; an event with the same one is the same event. Empty: every event is another one
	Body   []byte
	Again  bool          // an attempt to interpret it has failed
	Known  time.Duration // for how long after its interpretation, and an hour, the inbox knows its ID
	Found  bool          // errand has found it by itself and may find it again, until which it stays given up
}

// Handler interprets an event and says in a few words what became of it. After an ErrUnreadable the event is kept for
// an operator; after any other error the handler gets it again, later and perhaps in another process.
type Handler func(ctx context.Context, e Event) (outcome string, err error)

// Inbox keeps events until they are interpreted.
type Inbox interface {
	// Handle sets the handler for the events of a source, before any event is interpreted.
	Handle(source string, h Handler)
	// Accept stores an event of at most MaxEvent bytes, so that its sender may forget it. It succeeds if the event is
	// known, and replaces one that was sent and given up. An error means that the event is not stored.
	Accept(ctx context.Context, e Event) error
}

// ErrUnreadable means that an event cannot be interpreted, however often that is tried.
var ErrUnreadable = errors.New("the event cannot be interpreted")
