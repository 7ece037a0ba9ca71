package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/agent"
)

// full is a disk without room.
type full struct{}

var errFull = errors.New("no space left on device")

func (full) Write([]byte) (int, error) { return 0, errFull }

// A script must not take for a result what is not there: whatever cannot be printed is an error.
func TestWhatCannotBePrintedIsAnError(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	id := f.submit("Hello")
	for _, args := range []string{
		"list", "list -json", "show " + id, "show -json " + id, "costs", "costs -csv", "chat Hello", "chat -json Hello", "cancel " + id, "init slack", "help list",
	} {
		var errs strings.Builder
		code := client(t.Context(), strings.Fields(args), world{getenv: f.getenv, stdin: strings.NewReader(""), stdout: full{}, stderr: &errs})
		if code != 1 || !strings.Contains(errs.String(), errFull.Error()) {
			t.Errorf("%s: exit %d: %s", args, code, errs.String())
		}
	}
}

// Nor does anybody follow a task to its end whom nobody hears.
func TestFollowingIntoAFullDiskEnds(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	id := f.submit("Hello")
	f.Append(f.Claim(id), agent.Event{Kind: agent.Text, Text: "4"})
	var errs strings.Builder
	code := client(t.Context(), []string{"logs", "-f", id}, world{getenv: f.getenv, stdin: strings.NewReader(""), stdout: full{}, stderr: &errs})
	if code != 1 || !strings.Contains(errs.String(), "no space left on device; the task goes on: `enqueue logs -f "+id) {
		t.Errorf("exit %d: %s", code, errs.String())
	}
}
