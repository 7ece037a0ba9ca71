package capacity

import (
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/people"
)

// WhyPaused explains, as a clause, why tasks of a paused class wait.
func WhyPaused(class string, h store.Halt) string { return by(h) + " paused " + class + " tasks" }

// by names who did it. The console's token does not know.
func by(h store.Halt) string {
	if h.By == "" || h.By == people.Console {
		return "an operator"
	}
	return h.By
}

// CordonedBy says, as a clause, who cordoned a worker.
func CordonedBy(h store.Halt) string { return by(h) + " cordoned it" }
