package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	wait "github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/tasks/intake"
)

// An event that was given up is listed and tried again through a real front door.
func TestInbox(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	if code, out, errs := f.run("inbox"); code != 0 || out != "" || errs != "No event has failed.\n" {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
	inbox := f.inboxes[0]
	inbox.Handle("hub", func(context.Context, intake.Event) (string, error) {
		return "", fmt.Errorf("%w: it has no number", intake.ErrUnreadable)
	})
	stop, err := f.inboxes.Serve()
	if err != nil {
		t.Fatal(err)
	}
	if err := inbox.Accept(t.Context(), intake.Event{Source: "hub", Kind: "issue opened", ID: "1-a"}); err != nil {
		t.Fatal(err)
	}
	const id = "hub.1-a"
	wait.Until(t, "the event is listed", func() bool {
		code, out, errs := f.run("inbox", "list")
		if code != 0 {
			t.Fatalf("exit %d, %s%s", code, out, errs)
		}
		for _, want := range []string{id, "issue opened", "given up", "it has no number"} {
			if out != "" && !strings.Contains(out, want) {
				t.Errorf("%s lacks %s", out, want)
			}
		}
		return out != ""
	})
	stop()
	if code, out, errs := f.run("inbox", "replay", id); code != 0 || out != id+" is tried again\n" {
		t.Errorf("exit %d, %q, %s", code, out, errs)
	}
	if code, out, _ := f.run("inbox", "--json"); code != 0 || !strings.Contains(out, `"events": []`) {
		t.Errorf("exit %d, %s", code, out)
	}
	if code, _, errs := f.run("inbox", "replay", "none"); code != 1 ||
		!strings.Contains(errs, "No event with this ID has failed") {
		t.Errorf("exit %d, %s", code, errs)
	}
	if code, _, _ := f.run("inbox", "replay"); code != 2 {
		t.Errorf("exit %d", code)
	}
}
