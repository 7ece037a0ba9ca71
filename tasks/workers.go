package tasks

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
)

// Able reports whether a worker takes tasks and can run them. A worker that reports nothing about its CLI counts as
// able.
func Able(w store.Worker) bool {
	h, err := cliOf(w)
	return err == nil && !w.Draining && h.OK
}

func cliOf(w store.Worker) (h agent.Health, err error) {
	if len(w.Health) == 0 {
		return agent.Health{OK: true}, nil
	}
	err = json.Unmarshal(w.Health, &h)
	return h, err
}

// Unable says, for operators, why none of these workers can run a task now, and what to do about it. If no other
// reason applies, it uses the first worker that cannot. Both results are empty if a worker can.
func Unable(seen []store.Worker) (what, remedy string) {
	if len(seen) == 0 {
		return "no worker is alive", "start one, with the same REDIS_URL"
	}
	if slices.ContainsFunc(seen, Able) {
		return "", ""
	}
	for _, w := range seen {
		switch h, err := cliOf(w); {
		case err != nil:
			return fmt.Sprintf("the CLI state of worker %s cannot be read", w.Host), "run the same version of errand everywhere"
		case !h.OK:
			return fmt.Sprintf("no worker can run tasks: %s (%s)", h.Problem, w.Host), h.Remedy
		}
	}
	return "all workers are shutting down", ""
}

// WhyNoWorker explains the same to the asker of a task, as a clause without names and paths of machines.
func WhyNoWorker(seen []store.Worker) string {
	if what, _ := Unable(seen); what == "" || len(seen) == 0 {
		return what
	}
	for _, w := range seen {
		if h, err := cliOf(w); err == nil && !h.OK && h.Sentence != "" {
			return "no worker can run tasks: " + lowerFirst(strings.TrimSuffix(h.Sentence, "."))
		}
	}
	return "no worker can run tasks"
}

// noteUnable sets why a due task waits, if no worker can run tasks.
func (d *Desk) noteUnable(ctx context.Context, list []Status) {
	due := func(s Status) bool { return s.State == string(store.Waiting) && !s.At.After(time.Now()) }
	if !slices.ContainsFunc(list, due) {
		return
	}
	seen, err := d.store.Workers.List(ctx)
	if err != nil {
		return // the task's own reason still holds
	}
	why := WhyNoWorker(seen)
	for i := range list {
		if why != "" && due(list[i]) {
			list[i].Why = why
		}
	}
}

func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }
