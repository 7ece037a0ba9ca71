package attempt

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/store"
)

// whyPaused says why a task waits for long: for the end of an outage, or until a time.
func whyPaused(wait store.Wait, outage bool) string {
	if outage { // which may take several tries
		return fmt.Sprintf("Paused: %s. The work so far is kept, and the task continues by itself as soon as the "+
			"model answers again, for up to %d hours.", wait.Why, int(horizon.Hours()))
	}
	return fmt.Sprintf("Paused until %s: %s. The work so far is kept, and the task continues by itself.",
		moment(wait.At, time.Now()), wait.Why)
}

// moment formats a time in UTC and how far away it is.
func moment(at, now time.Time) string {
	form := "15:04 UTC"
	if at.Sub(now) > 12*time.Hour {
		form = "15:04 UTC on 2 January"
	}
	away := max(at.Sub(now), 0)
	if away >= 48*time.Hour {
		return at.UTC().Format(form) + " (in " + display.Age(away) + ")"
	}
	if away > 2*time.Minute {
		away = away.Round(time.Minute)
	}
	return at.UTC().Format(form) + " (in " + display.Lasted(away) + ")"
}

// clause returns why a run failed, as a clause.
func clause(r agent.Result) string {
	if r.Error == nil {
		return "the agent showed no sign of work"
	}
	first, _, _ := strings.Cut(r.Error.User, ". ")
	if first == "" {
		return "the agent failed (" + string(r.Error.Class) + ")"
	}
	letter, size := utf8.DecodeRuneInString(first)
	return string(unicode.ToLower(letter)) + strings.TrimSuffix(first[size:], ".")
}
