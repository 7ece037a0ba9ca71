package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/desk"
)

// Classes are paused and workers cordoned through a real front door, which also says who did it.
func TestPauseAndCordon(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	if _, err := f.Store.Workers.Beat(t.Context(), store.Worker{ID: "mill-1", Host: "mill"}); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ command, out string }{
		{"pause review", "review: workers take no tasks since "},
		{"resume review", "workers take tasks again: review"},
		{"cordon mill-1", "mill-1: workers take no tasks since "},
		{"uncordon mill-1", "workers take tasks again: mill-1"},
		{"cordon mill", "mill: workers take no tasks since "},
	} {
		if code, out, errs := f.run(strings.Fields(step.command)...); code != 0 || errs != "" ||
			!strings.HasPrefix(out, step.out) {
			t.Errorf("%s: exit %d, %q, %s", step.command, code, out, errs)
		}
		paused, err := f.Store.Paused.All(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		cordoned, err := f.Store.Cordoned.All(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, name, _ := strings.Cut(step.command, " ")
		_, halted := paused[name]
		if _, too := cordoned[name]; (halted || too) != (strings.HasPrefix(step.command, "pause") ||
			strings.HasPrefix(step.command, "cordon")) {
			t.Errorf("after %s: paused %v, cordoned %v", step.command, paused, cordoned)
		}
	}
	for command, want := range map[string]string{
		"pause lunch": "There is no class", "cordon nobody": "No live worker",
		"uncordon mill-1": "is not cordoned. A host is uncordoned by its name",
	} {
		if code, _, errs := f.run(strings.Fields(command)...); code == 0 || !strings.Contains(errs, want) {
			t.Errorf("%s: exit %d, %s", command, code, errs)
		}
	}
	if code, _, _ := f.run("pause"); code != 2 {
		t.Errorf("without a class: exit %d", code)
	}
	var h desk.Halted
	if code, out, _ := f.run("pause", "--json", "background"); code != 0 || json.Unmarshal([]byte(out), &h) != nil ||
		h.Name != "background" || h.Halt == nil {
		t.Errorf("exit %d: %s", code, out)
	}
}
