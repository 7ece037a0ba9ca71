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

// Workers holds the workers that are alive, and requests that any of them can answer.
type Workers struct {
	*conn
	hints *hints
}

// workerTTL is how long a worker counts as alive after a heartbeat. It sends one every 5 s.
const workerTTL = 15 * time.Second

// Worker is the state that a worker publishes.
type Worker struct {
	ID, Host, Version   string
	Pool                string `json:",omitempty"` // whose tasks it takes; empty: the default one
	Pid, Slots, Running int    // Running of Slots are taken
	Memory              int64  `json:",omitempty"` // bytes available for further runs; 0 = unknown
	Started             time.Time
	Seen                time.Time       `json:"-"` // of the last beat, by Redis' clock; Beat ignores it
	Draining            bool            // takes no new tasks
	Taking              bool            `json:"-"`          // takes tasks now, and so shares the polls of its pool
	Cordoned            bool            `json:",omitempty"` // takes no new tasks, because of a Cordon
	Cordon              *Halt           `json:"-"`          // who cordoned it; nil: it is not. Beat ignores it
	Health              json.RawMessage `json:",omitempty"` // of its CLI; opaque
	Credential          string          `json:",omitempty"` // name of its model credential; see [Credential]
	Notices             []Finding       `json:",omitempty"` // about its configuration
	Sources             []string        `json:",omitempty"` // that it is set up for; none: unknown
	Digest              string          `json:",omitempty"` // of its configuration, to find differences; empty: unknown
	URL                 string          `json:",omitempty"` // where front doors on other machines can request logs
}

// defaultPool names the default pool in keys.
const defaultPool = "default"

// Pulse is the reply to a heartbeat.
type Pulse struct {
	Taking   int  // workers of its pool that take tasks, with this one
	Cordoned bool // this one takes no tasks; see [Store.Cordoned]
}

// Beat records that the worker is alive for the next 15 s, and whether it takes tasks.
func (s *Workers) Beat(ctx context.Context, w Worker) (Pulse, error) {
	state, err := json.Marshal(w)
	if err != nil {
		return Pulse{}, fmt.Errorf("beat %s: %w", w.ID, err)
	}
	r, err := s.run(ctx, "beat", w.ID, state, workerTTL.Milliseconds(), w.Host, cmp.Or(w.Pool, defaultPool),
		w.Taking)
	if err != nil {
		return Pulse{}, fmt.Errorf("beat %s: %w", w.ID, err)
	}
	return Pulse{r.number(1), r.text(2) == "1"}, nil
}

// List lists the live workers, by ID.
func (s *Workers) List(ctx context.Context) ([]Worker, error) {
	var index *redis.ZSliceCmd
	var cordons *redis.MapStringStringCmd
	if _, err := s.redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		index, cordons = p.ZRangeWithScores(ctx, s.key("workers"), 0, -1), p.HGetAll(ctx, s.key(cordoned))
		return nil
	}); err != nil {
		return nil, fmt.Errorf("list workers: %w", err)
	}
	seen := index.Val()
	if len(seen) == 0 {
		return nil, nil
	}
	at := func(z redis.Z) time.Time { return time.UnixMicro(int64(z.Score)) }
	names := make([]string, len(seen))
	for i, z := range seen {
		names[i] = s.key("worker", fmt.Sprint(z.Member))
	}
	states, err := s.redis.MGet(ctx, names...).Result()
	if err != nil {
		return nil, fmt.Errorf("list workers: %w", err)
	}
	var workers []Worker
	for i, z := range seen {
		var w Worker
		// The index may name a dead worker until another worker's beat trims it.
		if state := reply(states).text(i); state != "" {
			if json.Unmarshal([]byte(state), &w) != nil { // written by another version; the worker is alive
				w = Worker{ID: fmt.Sprint(z.Member), Health: json.RawMessage(`"unreadable"`)}
			}
			w.Seen = at(z)
			for _, name := range []string{w.ID, w.Host} {
				if body, ok := cordons.Val()[name]; ok && w.Cordon == nil {
					h := readEntry[Halt](body)
					w.Cordon = &h
				}
			}
			workers = append(workers, w)
		}
	}
	slices.SortFunc(workers, func(a, b Worker) int { return cmp.Compare(a.ID, b.ID) })
	return workers, nil
}
