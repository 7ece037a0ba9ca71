package console

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/web/internal/view"
)

// wait is what a waiting task waits for.
type wait struct {
	Ahead    []row  // what comes first, or runs at its place
	AheadURL string // all of that
	Estimate string // until it starts, such as "about 4 min"; empty if too little is known
}

const (
	estimateFrom = 50 // ended tasks that an estimate looks at
	estimateOf   = 5  // tasks of the same class that it needs
	aheadOf      = 5  // tasks in wait.Ahead
)

// readWait looks up what a task waits for. A task that waits for a time has that in its headline.
func (c *Console) readWait(ctx context.Context, s tasks.Status) (w wait, err error) {
	now := c.View.Now()
	if s.Ending != nil || s.State != string(store.Waiting) || !s.Headline(now).Until.IsZero() {
		return w, nil
	}
	ahead, err := c.ahead(ctx, s, &w)
	if err != nil {
		return w, err
	}
	for _, one := range ahead[:min(len(ahead), aheadOf)] {
		w.Ahead = append(w.Ahead, newRow(c.View.NewTask(one), now))
	}
	past, err := c.View.Desk.List(ctx, desk.Filter{State: string(store.Ended), Limit: estimateFrom})
	if err == nil {
		w.Estimate = estimate(s, ahead, past.Tasks, now)
	}
	return w, err
}

// ahead returns the runs that take up the limit that a task waits for, or the earlier tasks of its thread.
func (c *Console) ahead(ctx context.Context, s tasks.Status, w *wait) ([]tasks.Status, error) {
	if s.Blocked.Scope == "" {
		open, err := c.View.Desk.Open(ctx, s.Task.Thread)
		at := slices.IndexFunc(open, func(one tasks.Status) bool { return one.Task.ID == s.Task.ID })
		return open[:max(0, at)], err
	}
	f := desk.Filter{State: string(store.Running), Limit: view.DefaultList}
	switch kind, name, _ := strings.Cut(s.Blocked.Scope, ":"); kind {
	case "repo":
		f.Repo = name
	case "user":
		f.Person = name
	}
	w.AheadURL = listURL(f)
	running, err := c.View.Desk.List(ctx, f)
	return slices.DeleteFunc(running.Tasks, func(one tasks.Status) bool {
		return len(one.Questions) > 0 // it leaves its place to others
	}), err
}

// estimate returns how long a task probably waits, by the latest tasks of its class and the age of runs ahead of it.
// It is empty if that cannot be known. Behind others it waits for their runs, and otherwise as long as the others did.
func estimate(s tasks.Status, ahead, past []tasks.Status, now time.Time) string {
	var waits, lasts []time.Duration
	for _, p := range past {
		if p.Task.Class != s.Task.Class || p.Started.IsZero() || p.Attempt != 1 || !p.Ended.After(p.Started) {
			continue
		}
		waits, lasts = append(waits, p.Started.Sub(due(p))), append(lasts, p.Ended.Sub(p.Started))
	}
	if len(waits) < estimateOf {
		return ""
	}
	left, known := rest(waits, now.Sub(due(s)))
	if s.Position > 0 {
		left, known = freeAfter(s.Position, max(1, s.Blocked.Max), ahead, lasts, now)
	}
	switch {
	case !known:
		return ""
	case left < 90*time.Second:
		return "about a minute"
	case left < 90*time.Minute:
		return fmt.Sprintf("about %.0f min", left.Minutes())
	}
	return fmt.Sprintf("about %.0f h", left.Hours())
}

// due returns since when a task could start.
func due(s tasks.Status) time.Time {
	return slices.MaxFunc([]time.Time{s.Created, s.Retried, s.Task.NotBefore}, time.Time.Compare)
}

// freeAfter returns after how long a place becomes free for the task at a position in line, from 1. A run whose end
// cannot be known, or that the visitor does not see, frees none.
func freeAfter(
	position, places int, ahead []tasks.Status, lasts []time.Duration, now time.Time,
) (left time.Duration, known bool) {
	var frees []time.Duration
	for _, one := range ahead {
		if one.State != string(store.Running) || one.Started.IsZero() {
			continue
		}
		if left, known := rest(lasts, now.Sub(one.Started)); known && len(frees) < places {
			frees = append(frees, left)
		}
	}
	if len(frees) == 0 {
		return 0, false
	}
	for range position - 1 { // the next in line takes the place that is free first
		slices.Sort(frees)
		frees[0] += median(lasts)
	}
	return slices.Min(frees), true
}

// rest returns how much longer something of an age probably lasts, by those of the others that lasted longer. It is not
// known if these are too few.
func rest(others []time.Duration, age time.Duration) (left time.Duration, known bool) {
	var longer []time.Duration
	for _, d := range others {
		if d > age {
			longer = append(longer, d)
		}
	}
	if len(longer) < estimateOf {
		return 0, false
	}
	return median(longer) - age, true
}

func median(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/2]
}
