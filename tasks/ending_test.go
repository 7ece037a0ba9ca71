package tasks

import (
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/google/go-cmp/cmp"
)

func TestEndingForPeople(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 2000)
	for name, c := range map[string]struct {
		e                         Ending
		sentence, partial, footer string
	}{
		"answered": {
			Ending{Kind: Answered, Result: agent.Result{Text: "42", Partial: "4", Turns: 3, CostUSD: 0.127, Model: "m", Duration: 61 * time.Second}},
			"", "", "1m1s · 3 turns · $0.13 · m",
		},
		"at once": {
			Ending{Kind: Answered, Result: agent.Result{Text: "42", Turns: 1, Duration: time.Second}},
			"", "", "1s · 1 turn",
		},
		"fresh": {
			Ending{Kind: Answered, Result: agent.Result{Text: "42", Fresh: true, Duration: time.Second}},
			"", "", "1s · a new conversation, because the earlier one could not be resumed",
		},
		"interrupted": {
			Ending{Kind: Answered, Result: agent.Result{Text: "42", CostUSD: 0.5, Duration: time.Second}, Bill: Bill{Earlier: 0.25, Near: []string{"your budget for today: $8.10 of $10.00"}}},
			"", "", "1s · $0.75 · your budget for today: $8.10 of $10.00",
		},
		"crashed": {
			Ending{Kind: Answered, Result: agent.Result{Text: "42", CostUSD: 0.5, Duration: time.Second}, Bill: Bill{Crashes: 1}},
			"", "", "1s · $0.50 and the unknown cost of runs that died with a worker",
		},
		"empty":     {Ending{Kind: Answered}, "Done. The agent had nothing to add.", "", ""},
		"timed out": {Ending{Kind: TimedOut, Limit: "2h", Result: agent.Result{Partial: long}}, "This timed out after 2h and was stopped. Ask for less at once, or ask again to continue from here.", strings.Repeat("é", 1000) + "…", ""},
		"stalled":   {Ending{Kind: Stalled, Limit: "15m"}, "The agent showed no sign of work for 15m and was stopped. Ask again to go on.", "", ""},
		"cancelled": {Ending{Kind: Cancelled, By: "Ann", Result: agent.Result{Partial: " half "}}, "This was stopped by Ann. Ask again to go on.", "half", ""},
		"failed":    {Ending{Kind: Failed, Reason: "No."}, "No.", "", ""},
		"unsaid":    {Ending{Kind: Failed}, "This failed. The log says more.", "", ""},
		"lost":      {Ending{Kind: Lost}, "The workers running this died several times, so errand gave up, at unknown cost. Ask an operator to look at the log.", "", ""},
	} {
		got := []string{c.e.Sentence(), c.e.Partial(), c.e.Footer()}
		if diff := cmp.Diff([]string{c.sentence, c.partial, c.footer}, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
