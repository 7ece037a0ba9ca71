package tasks

import (
	"context"
	"fmt"
	"slices"

	"github.com/hibiken/asynq"
)

// Depth is how full the queue of a class is. What is counted are deliveries, so it may differ for a moment from what the tasks say.
type Depth struct {
	Class   string  `json:"class"`
	Waiting int     `json:"waiting"`             // for a worker to take them
	Oldest  float64 `json:"oldest_wait_seconds"` // how long the first of these has waited
	Later   int     `json:"later"`               // wait for their thread, a slot or a certain time
	Running int     `json:"running"`
}

// Depths tells of every class, the most urgent first. It costs the same however much waits.
func (d *Desk) Depths(ctx context.Context) ([]Depth, error) { return d.queue.depths(ctx) }

func (q *Queue) depths(ctx context.Context) ([]Depth, error) {
	used, err := q.inspector.Queues()
	if err != nil {
		return nil, fmt.Errorf("list queues: %w", err)
	}
	list := make([]Depth, 0, len(Classes))
	for _, class := range Classes {
		info := &asynq.QueueInfo{}
		if err := context.Cause(ctx); err != nil {
			return nil, fmt.Errorf("read queue %s: %w", class, err) // asynq takes no context
		}
		if slices.Contains(used, class) { // the others do not exist until something is put in
			if info, err = q.inspector.GetQueueInfo(class); err != nil {
				return nil, fmt.Errorf("read queue %s: %w", class, err)
			}
		}
		list = append(list, Depth{
			Class: class, Waiting: info.Pending, Oldest: info.Latency.Seconds(), Later: info.Scheduled + info.Retry, Running: info.Active,
		})
	}
	return list, nil
}
