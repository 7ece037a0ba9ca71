package capacity

import (
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/people"
)

// WhyPaused explains, as a clause, why tasks of a paused class wait.
func WhyPaused(class string, h store.Halt, now time.Time) string {
	return by(h) + " paused " + class + " tasks " + when(h, now)
}

// by names who did it. The console's token does not know.
func by(h store.Halt) string {
	if h.By == "" || h.By == people.Console {
		return "an operator"
	}
	return h.By
}

// when returns the time of a halt after a preposition.
func when(h store.Halt, now time.Time) string {
	layout := "at 15:04 UTC"
	if since := h.Since.UTC(); since.Format(time.DateOnly) != now.UTC().Format(time.DateOnly) {
		layout = "on 2006-01-02 at 15:04 UTC"
	}
	return h.Since.UTC().Format(layout)
}

// CordonedBy says, as a clause, who cordoned a worker.
func CordonedBy(h store.Halt, now time.Time) string {
	return by(h) + " cordoned it " + when(h, now)
}
