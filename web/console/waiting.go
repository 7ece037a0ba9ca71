package console

import (
	"context"
	"fmt"
	"math"
	"net/url"
	"slices"
	"time"

	"github.com/errand-fleet/errand/internal/legible"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// wait is what a waiting task waits for.
type wait struct {
	Before, BeforeURL string // what comes first
	Estimate          string // until it starts, such as "about 4 min"; empty if too little is known
}

const (
	estimateFrom = 50 // ended tasks that an estimate looks at
	estimateOf   = 5  // tasks of the same class that it needs
)

// readWait looks up what a task waits for. A task that waits for a time has that in its headline.
func (c *Console) readWait(ctx context.Context, s tasks.Status) (w wait, err error) {
	now := c.view.Now()
	if s.Ending != nil || s.State != string(store.Waiting) || !s.Headline(now).Until.IsZero() {
		return w, nil
	}
	if s.Blocked.Scope != "" {
		w.Before, w.BeforeURL = "the runs that are under way", "/?state=running"
		if repo := s.Task.Repo; repo != "" && s.Blocked.Scope == "repo:"+repo {
			w.Before, w.BeforeURL = "the runs in "+repo, "/?state=running&repository="+url.QueryEscape(repo)
		}
	} else if open, err := c.view.Desk.Open(ctx, s.Task.Thread); err != nil {
		return w, err
	} else if len(open) > 0 && open[0].Task.ID != s.Task.ID {
		w.Before, w.BeforeURL = legible.Line(open[0].Task.Title()), "/tasks/"+open[0].Task.ID
		s.Position = max(1, s.Position) // a running task is not counted
	}
	past, err := c.view.Desk.List(ctx, tasks.Filter{State: string(store.Ended), Limit: estimateFrom})
	if err == nil {
		w.Estimate = estimate(s, past.Tasks, now)
	}
	return w, err
}

// estimate returns how long a task probably waits, by the latest tasks of its class. Behind others it waits for their
// runs, and otherwise as long as the others did.
func estimate(s tasks.Status, past []tasks.Status, now time.Time) string {
	var waits, lasts []time.Duration
	for _, p := range past {
		if p.Task.Class != s.Task.Class || p.Started.IsZero() || p.Attempt != 1 || !p.Ended.After(p.Started) {
			continue
		}
		due := slices.MaxFunc([]time.Time{p.Created, p.Retried, p.Task.NotBefore}, time.Time.Compare)
		waits, lasts = append(waits, p.Started.Sub(due)), append(lasts, p.Ended.Sub(p.Started))
	}
	if len(waits) < estimateOf {
		return ""
	}
	left := median(waits) - now.Sub(s.Created)
	switch place := max(s.Position, s.Blocked.Place); {
	case s.Blocked.Scope != "" && s.Blocked.Max > 0:
		left = median(lasts) * time.Duration(math.Ceil(float64(place)/float64(s.Blocked.Max)))
	case place > 0:
		left = median(lasts) * time.Duration(place)
	}
	switch {
	case left <= 0:
		return ""
	case left < 90*time.Second:
		return "about a minute"
	case left < 90*time.Minute:
		return fmt.Sprintf("about %.0f min", left.Minutes())
	}
	return fmt.Sprintf("about %.0f h", left.Hours())
}

func median(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/2]
}
