package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
)

// Thread is what a thread's latest task leaves to its next one, which goes on in the same place and the same way unless it says otherwise.
type Thread struct {
	Latest  string        `json:"latest"` // ID of that task
	Repo    string        `json:"repo,omitempty"`
	Ref     string        `json:"ref,omitempty"`
	Profile agent.Profile `json:"profile,omitempty"`
	Options Options       `json:"options,omitzero"` // without Plan: what is said to a plan is that it be carried out
}

// topic is what the store keeps of it. Only where people talk is there a next one to go by it.
func topic(t Task) json.RawMessage {
	if t.Class != Interactive {
		return nil
	}
	t.Options.Plan = false
	return mustJSON(Thread{Latest: t.ID, Repo: t.Repo, Ref: t.Ref, Profile: t.Profile, Options: t.Options})
}

// Thread reads it; ErrNotFound where nobody has asked for anything, or not for long.
func (d *Desk) Thread(ctx context.Context, name string) (Thread, error) {
	var t Thread
	name, err := d.store.Resolve(ctx, name)
	if err != nil {
		return t, fmt.Errorf("read thread: %w", err)
	}
	stored, err := d.store.Topic(ctx, name)
	if errors.Is(err, store.ErrNotFound) {
		return t, fmt.Errorf("read thread %s: %w", name, ErrNotFound)
	}
	if err == nil {
		err = json.Unmarshal(stored, &t)
	}
	if err != nil {
		return t, fmt.Errorf("read thread %s: %w", name, err)
	}
	return t, nil
}

// Open reads the tasks of a thread that have not ended, in the order in which they start. Those that are in the run of another are not
// among them.
func (d *Desk) Open(ctx context.Context, thread string) ([]Status, error) {
	thread, err := d.store.Resolve(ctx, thread)
	if err != nil {
		return nil, fmt.Errorf("read thread: %w", err)
	}
	records, err := d.store.Open(ctx, thread)
	if err != nil {
		return nil, err
	}
	list := make([]Status, len(records))
	for i, rec := range records {
		if list[i], err = status(rec); err != nil {
			return nil, err
		}
		list[i].follows(i)
	}
	return list, nil
}
