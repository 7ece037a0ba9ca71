package queue

import (
	"context"
	"fmt"
	"slices"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/hibiken/asynq"
)

// Depth is the length of the queue of a class in a pool. Waiting counts deliveries, so it can differ for a moment from
// what the tasks' states say.
type Depth struct {
	Pool    string  `json:"pool,omitempty"` // empty: the default one
	Class   string  `json:"class"`
	Waiting int     `json:"waiting"`             // deliveries that a worker can take now
	Oldest  float64 `json:"oldest_wait_seconds"` // age of the oldest of these
	Running int     `json:"running"`             // tasks

	Paused *store.Halt `json:"paused,omitempty"` // nil: workers take its tasks
}

// Depths returns the queue depth of every class in the default pool, the most urgent first, and then of the other pools
// with deliveries. Its cost does not depend on the number of waiting tasks.
func (q *Queue) Depths(ctx context.Context) ([]Depth, error) {
	used, err := inspector(q).Queues()
	if err != nil {
		return nil, fmt.Errorf("list queues: %w", err)
	}
	queues := slices.Concat(tasks.Classes, poolQueues(used))
	paused, err := q.store.Paused.All(ctx)
	if err != nil {
		return nil, err
	}
	runs, err := q.store.Running(ctx)
	if err != nil {
		return nil, err
	}
	running := map[string]int{} // by queue
	for _, r := range runs {
		running[r.Queue()]++
	}
	list := make([]Depth, 0, len(queues))
	for _, queue := range queues {
		info := &asynq.QueueInfo{}
		if err := context.Cause(ctx); err != nil {
			return nil, fmt.Errorf("read queue %s: %w", queue, err) // asynq's inspector takes no context
		}
		if slices.Contains(used, queue) { // asynq creates a queue with its first task
			if info, err = inspector(q).GetQueueInfo(queue); err != nil {
				return nil, fmt.Errorf("read queue %s: %w", queue, err)
			}
		}
		depth := Depth{
			Waiting: info.Pending, Oldest: info.Latency.Seconds(), Running: running[queue],
		}
		if depth.Pool, depth.Class = store.CutQueue(queue); depth.Pool != "" &&
			depth.Waiting+depth.Running == 0 {
			continue
		}
		if h, ok := paused[depth.Class]; ok {
			depth.Paused = &h
		}
		list = append(list, depth)
	}
	return list, nil
}
