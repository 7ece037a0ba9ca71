package tasks

import (
	"os"
	"regexp"
	"slices"
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
			Ending{Kind: Answered, Result: agent.Result{
				Text: "42", Partial: "4", Turns: 3, CostUSD: 0.127, Model: "m", Duration: 61 * time.Second,
			}},
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
			Ending{
				Kind: Answered, Result: agent.Result{Text: "42", CostUSD: 0.5, Duration: time.Second},
				Bill: Bill{Earlier: 0.25, Near: []string{"your budget for today: $8.10 of $10.00"}},
			},
			"", "", "1s · $0.75 · your budget for today: $8.10 of $10.00",
		},
		"crashed": {
			Ending{
				Kind: Answered, Result: agent.Result{Text: "42", CostUSD: 0.5, Duration: time.Second},
				Bill: Bill{Crashes: 1},
			},
			"", "", "1s · $0.50 and the unknown cost of runs that died with a worker",
		},
		"cheap": {
			Ending{
				Kind: Answered, Result: agent.Result{Text: "42", CostUSD: 0.0004, Duration: time.Second},
				Bill: Bill{Crashes: 1},
			},
			"", "", "1s · under $0.01 and the unknown cost of runs that died with a worker",
		},
		"empty": {Ending{Kind: Answered}, "Done. The agent had nothing to add.", "", ""},
		"timed out": {
			Ending{Kind: TimedOut, Limit: "2h", Result: agent.Result{Partial: long}},
			"Stopped at the time limit of 2h. Ask for something smaller, or ask again to continue from here.",
			strings.Repeat("é", 1000) + "…", "",
		},
		"stalled": {
			Ending{Kind: Stalled, Limit: "15m"},
			"Stopped because the agent showed no activity for 15m. Ask again to continue.", "", "",
		},
		"cancelled": {
			Ending{Kind: Cancelled, By: "Ann", Result: agent.Result{Partial: " half "}},
			"Stopped by Ann. Ask again to continue.", "half", "",
		},
		"failed": {Ending{Kind: Failed, Reason: "No."}, "No.", "", ""},
		"unsaid": {Ending{Kind: Failed}, "This failed. See the log for details.", "", ""},
		"lost": {
			Ending{Kind: Lost},
			"The workers running this died several times, so errand gave up. The cost is unknown. Ask an operator to check the log.", "", "",
		},
	} {
		got := []string{c.e.Sentence(), c.e.Partial(), c.e.Footer()}
		if diff := cmp.Diff([]string{c.sentence, c.partial, c.footer}, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// The table of endings should have every constant, and the API's description and docs/states.md every row of the table.
func TestEndingsAreInOneTable(t *testing.T) {
	t.Parallel()
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	var constants, listed []string
	for _, m := range regexp.MustCompile(`(?m)^\t\w+\s+EndingKind = "(\w+)"`).FindAllStringSubmatch(read("ending.go"), -1) {
		constants = append(constants, m[1])
	}
	for _, k := range EndingKinds() {
		listed = append(listed, string(k))
		if i := k.Info(); i.Kind != k || i.Title == "" || i.Sign == "" {
			t.Errorf("%s: %+v", k, i)
		}
		if !strings.Contains(read("../docs/states.md"), "\n| `"+string(k)+"` |") {
			t.Errorf("docs/states.md has no row for %s", k)
		}
	}
	slices.Sort(constants)
	if sorted := slices.Sorted(slices.Values(listed)); len(sorted) == 0 || !slices.Equal(constants, sorted) {
		t.Errorf("constants %q, table %q", constants, sorted)
	}
	if enum := "EndingKind: {type: string, enum: [" + strings.Join(listed, ", ") + "]}"; !strings.Contains(read("../web/api/openapi.yaml"), enum) {
		t.Errorf("openapi.yaml does not have %s", enum)
	}
}
