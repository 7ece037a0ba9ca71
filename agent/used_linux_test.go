package agent

import (
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

// The usage of a run should be reported while it works and after each turn; in a resumed conversation only the run's
// own share.
func TestCLITellsWhatItUses(t *testing.T) {
	t.Parallel()
	model, dir := newModel(t), t.TempDir()
	gate := make(chan struct{})
	model.Answer("", bash("true"), modelfake.Turn{Text: "Done.", Gate: gate})
	r := newCLI(t, model)
	r.usedEvery = 20 * time.Millisecond
	var told []Event
	h := &host{on: func(e Event) {
		if e.Kind != Used {
			return
		}
		if told = append(told, e); len(told) == 1 {
			close(gate) // the turn goes on only once there is news of it
		}
	}}
	first := runCLI(t, r, Spec{ID: "used", Dir: dir, Profile: Write}, h)
	if len(told) < 2 || told[0].CostUSD <= 0 || told[0].Usage.Output >= first.Usage.Output {
		t.Fatalf("reported %+v of %+v", told, first.Usage)
	}
	if last := told[len(told)-1]; *last.Usage != first.Usage || last.CostUSD != first.CostUSD {
		t.Errorf("in the end %+v, $%f; want %+v, $%f", *last.Usage, last.CostUSD, first.Usage, first.CostUSD)
	}

	again := &host{}
	second := runCLI(t, r, Spec{
		ID: "used-on", Dir: dir, Prompt: Message{Text: "y"}, Profile: Write, Resume: &first.Session,
	}, again)
	for _, e := range again.events {
		if e.Kind == Used && (*e.Usage == Usage{} || e.Usage.Input > second.Usage.Input || e.CostUSD > second.CostUSD) {
			t.Errorf("of the second run %+v, $%f; it used %+v, $%f", *e.Usage, e.CostUSD, second.Usage, second.CostUSD)
		}
	}
}
