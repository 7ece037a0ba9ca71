package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// workerTTL is how long a worker counts as alive after its last beat. It beats every 5 s.
const workerTTL = 15 * time.Second

// Worker is what a worker tells the fleet about itself.
type Worker struct {
	ID, Host, Version   string
	Pid, Slots, Running int   // Running of Slots are taken
	Memory              int64 `json:",omitempty"` // bytes available for further runs; 0 = nothing tells
	Started             time.Time
	Seen                time.Time       `json:"-"` // of the last beat, by Redis' clock; Beat ignores it
	Draining            bool            // takes nothing new
	Health              json.RawMessage `json:",omitempty"` // of its CLI; opaque
	Credential          string          `json:",omitempty"` // for the model, by its name; see [Credential]
	Notices             []Finding       `json:",omitempty"` // about its configuration
	URL                 string          `json:",omitempty"` // where front doors of other machines may ask it for logs
}

// Beat tells that the worker lives, for the next 15 s.
func (s *Workers) Beat(ctx context.Context, w Worker) error {
	state, err := json.Marshal(w)
	if err != nil {
		return fmt.Errorf("beat %s: %w", w.ID, err)
	}
	if _, err := s.run(ctx, "beat", w.ID, state, workerTTL.Milliseconds()); err != nil {
		return fmt.Errorf("beat %s: %w", w.ID, err)
	}
	return nil
}

// List lists those that live, by ID.
func (s *Workers) List(ctx context.Context) ([]Worker, error) {
	seen, err := s.redis.ZRangeWithScores(ctx, s.key.workers(), 0, -1).Result()
	if err != nil {
		return nil, fmt.Errorf("list workers: %w", err)
	}
	if len(seen) == 0 {
		return nil, nil
	}
	at := func(z redis.Z) time.Time { return time.UnixMicro(int64(z.Score)) }
	names := make([]string, len(seen))
	for i, z := range seen {
		names[i] = s.key.worker(fmt.Sprint(z.Member))
	}
	states, err := s.redis.MGet(ctx, names...).Result()
	if err != nil {
		return nil, fmt.Errorf("list workers: %w", err)
	}
	var workers []Worker
	for i, z := range seen {
		var w Worker
		// The index may name one that is gone until another worker's beat trims it.
		if state := reply(states).text(i); state != "" {
			if json.Unmarshal([]byte(state), &w) != nil { // of another version; it lives all the same
				w = Worker{ID: fmt.Sprint(z.Member), Health: json.RawMessage(`"unreadable"`)}
			}
			w.Seen = at(z)
			workers = append(workers, w)
		}
	}
	slices.SortFunc(workers, func(a, b Worker) int { return cmp.Compare(a.ID, b.ID) })
	return workers, nil
}
