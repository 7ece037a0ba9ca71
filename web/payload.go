package web

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/errand-fleet/errand/internal/legible"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

const (
	payloadLimit = 500 * time.Millisecond // for one look into the store
	payloadPause = 5 * time.Second        // without looking, after one that failed
	maxPayloads  = 1000                   // remembered
)

// records is the part of the store that knows a task by the ID that a delivery carries.
type records interface {
	Get(ctx context.Context, id string) (store.Record, error)
}

// payloads shows deliveries in words. What it shows of a task never changes, so it remembers it.
type payloads struct {
	records records

	mu     sync.Mutex
	known  map[string]string // by task
	paused time.Time         // until then the store is not asked
}

func newPayloads(r records) *payloads { return &payloads{records: r, known: map[string]string{}} }

// payload is what is shown of a task: never its prompt.
type payload struct {
	Task   string `json:"task"`
	Type   string `json:"type,omitempty"`
	Thread string `json:"thread,omitempty"`
	Actor  string `json:"actor,omitempty"`
}

// FormatPayload shows a payload that is a task's ID, and nothing of one that somebody else put into this Redis. asynqmon calls it for each
// delivery on a page, one after the other, and has no context for it.
func (p *payloads) FormatPayload(_ string, data []byte) string {
	id := string(data)
	if !tasks.ValidID(id) {
		return "(not a task ID)"
	}
	p.mu.Lock()
	shown, ok := p.known[id]
	paused := time.Now().Before(p.paused)
	p.mu.Unlock()
	if ok {
		return shown
	}
	view, err := payload{Task: id}, error(nil)
	if !paused {
		view, err = p.look(id)
	}
	b, _ := json.Marshal(view) // strings alone
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err != nil:
		p.paused = time.Now().Add(payloadPause)
	case view.Type != "":
		if len(p.known) >= maxPayloads {
			clear(p.known)
		}
		p.known[id] = string(b)
	}
	return string(b)
}

// look asks the store. Of a task that it knows no more there is the ID.
func (p *payloads) look(id string) (payload, error) {
	ctx, cancel := context.WithTimeout(context.Background(), payloadLimit)
	defer cancel()
	view := payload{Task: id}
	rec, err := p.records.Get(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return view, nil
	}
	var t tasks.Task
	if err == nil {
		err = json.Unmarshal(rec.Task, &t)
	}
	if err != nil {
		return view, err
	}
	view.Type, view.Thread, view.Actor = legible.Text(t.Source+" "+t.Kind), legible.Text(t.Thread), legible.Text(t.Actor)
	return view, nil
}
