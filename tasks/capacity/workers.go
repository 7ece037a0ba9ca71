// Package capacity says what the workers of the fleet can do: which of them take tasks, why none does, their pools and
// their credentials for the model, and what front doors can ask them.
package capacity

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// Able reports whether a worker takes tasks and can run them. A worker that reports nothing about its CLI counts as
// able.
func Able(w store.Worker) bool {
	h, err := ReadHealth(w.Health)
	return err == nil && !w.Draining && w.Cordon == nil && h.OK
}

// Serves reports whether a worker is set up for a source. A worker that does not say so counts as set up for all.
func Serves(w store.Worker, source string) bool {
	return len(w.Sources) == 0 || slices.Contains(w.Sources, source)
}

// Served reports whether a worker can run tasks of a source now.
func Served(seen []store.Worker, source string) bool {
	return slices.ContainsFunc(seen, func(w store.Worker) bool { return Able(w) && Serves(w, source) })
}

// Unserved counts, by source, the waiting tasks for which able workers of their pool exist, but none that is set up for
// their source.
func Unserved(live []store.LiveRecord, seen []store.Worker) map[string]int {
	waiting, pools := map[string]int{}, map[string][]store.Worker{}
	for _, w := range seen {
		pools[w.Pool] = append(pools[w.Pool], w)
	}
	for _, rec := range live {
		members := pools[rec.Pool]
		if source := tasks.SourceOf(rec.ID); rec.State == store.Waiting && slices.ContainsFunc(members, Able) &&
			!Served(members, source) {
			waiting[source]++
		}
	}
	return waiting
}

// ReadHealth reads a worker's report on its CLI. A worker without a report counts as healthy.
func ReadHealth(report json.RawMessage) (h agent.Health, err error) {
	if len(report) == 0 {
		return agent.Health{OK: true}, nil
	}
	err = json.Unmarshal(report, &h)
	return h, err
}

const allCordoned = "all workers are cordoned"

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
		switch h, err := ReadHealth(w.Health); {
		case err != nil:
			return fmt.Sprintf("the CLI state of worker %s cannot be read",
				w.Host), "run the same version of errand everywhere"
		case !h.OK:
			return fmt.Sprintf("no worker can run tasks: %s (%s)", h.Problem, w.Host), h.Remedy
		}
	}
	if slices.ContainsFunc(seen, func(w store.Worker) bool { return w.Cordon != nil && !w.Draining }) {
		return allCordoned, "uncordon one on the page Fleet, or with `enqueue uncordon`"
	}
	return "all workers are shutting down", ""
}

// WhyNoWorker explains the same to the asker of a task, as a clause without names and paths of machines.
func WhyNoWorker(seen []store.Worker) string {
	if what, _ := Unable(seen); what == "" || what == allCordoned || len(seen) == 0 {
		return what
	}
	for _, w := range seen {
		if h, err := ReadHealth(w.Health); err == nil && !h.OK && h.Sentence != "" {
			return "no worker can run tasks: " + strings.ToLower(h.Sentence[:1]) + strings.TrimSuffix(h.Sentence[1:],
				".")
		}
	}
	return "no worker can run tasks"
}
