package chat

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/capacity"
	"github.com/errand-fleet/errand/tasks/desk"
)

// waitCheck is how often the stream of a task looks whether it waits, and why.
const waitCheck = 3 * time.Second

// tellWaits starts to send why a task waits, each time that the reason changes. The function that it returns ends that.
func (s *Source) tellWaits(ctx context.Context, d *desk.Desk, out *stream, id string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var telling sync.WaitGroup
	telling.Go(func() {
		tick := time.NewTicker(s.waitCheck)
		defer tick.Stop()
		last := ""
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			status, err := d.Status(ctx, id)
			if err != nil {
				continue // the next look may succeed
			}
			if status.State != "waiting" || status.Why == last {
				continue
			}
			last = status.Why
			text := "Waiting: " + last
			out.Send("", "", event{Type: "waiting", Content: &text})
		}
	})
	return func() {
		cancel()
		telling.Wait()
	}
}

// offerLimit bounds how long a request that names an agent waits for a worker that knows the agents. Without an answer
// the run checks the name.
const offerLimit = 2 * time.Second

// checkAgent returns an *tasks.InputError for an agent that a worker says does not exist.
func (s *Source) checkAgent(ctx context.Context, d *desk.Desk, t tasks.Task) error {
	if t.Options.Agent == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.offerLimit)
	defer cancel()
	offer, err := d.Offer(ctx, capacity.Where{Repo: t.Repo, Dir: t.Dir})
	if err != nil {
		return nil // nobody knows
	}
	var names []string
	for _, one := range offer.Agents {
		names = append(names, one.Name)
	}
	if len(names) == 0 || slices.Contains(names, t.Options.Agent) {
		return nil
	}
	return &tasks.InputError{Sentence: fmt.Sprintf("There is no agent %q here. There are: %s.", t.Options.Agent,
		strings.Join(names, ", "))}
}
