package desk

import (
	"encoding/json"
	"testing"

	"github.com/errand-fleet/errand/agent"
)

// An event that another version of errand has stored is shown as one that cannot be read.
func TestUnreadableEvent(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	id := f.submit(f.task("a", "x"))
	claim, err := f.store.Claim(t.Context(), id, 0, "w")
	if err != nil {
		t.Fatal(err)
	}
	if err := claim.Append(t.Context(), json.RawMessage(`["of another version"]`)); err != nil {
		t.Fatal(err)
	}
	for l, err := range f.desk.Follow(t.Context(), id, "") {
		if err != nil || l.Event.Kind != agent.Notice || l.Event.Text == "" {
			t.Errorf("%+v, %v", l, err)
		}
		break
	}
}
