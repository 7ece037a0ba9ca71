package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

// A request that kills its worker each time is given up after three deaths. The tasks that ran beside it the first time
// are answered once each, and only that death counts against them.
func TestCulpritIsToldFromBystanders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env["ERRAND_CONCURRENCY"] = "4"
	deadly, beside := make(chan struct{}, 1), make(chan struct{}, 3)
	w.model.Answer("take it down", modelfake.Turn{Started: deadly, Hang: true})
	gate := make(chan struct{})
	w.model.Answer("harmless", modelfake.Turn{Started: beside, Gate: gate, Text: "Nothing happened."})
	base := w.frontDoor()
	worker := w.processAs(forgetful, w.Output())
	roots := []string{w.mention("take it down", "")}
	<-deadly
	for _, words := range []string{"harmless one", "harmless two", "harmless three"} {
		roots = append(roots, w.mention(words, ""))
		<-beside
	}
	close(gate) // too late for runs under way: their worker dies first
	for n := 1; ; n++ {
		if err := worker.Process.Signal(os.Kill); err != nil {
			t.Fatal(err)
		}
		_ = worker.Wait()
		worker = w.processAs(forgetful, w.Output())
		if n == 3 {
			break
		}
		select {
		case <-deadly:
		case <-time.After(await.Bound):
			t.Fatalf("the culprit was not tried again: %s", w.get(base+"/api/tasks/"+w.taskID(roots[0])))
		}
		if n > 1 {
			continue
		}
		// They were started again at once, beside the culprit, and end before it kills its second worker.
		for _, root := range roots[1:] {
			if final := w.answers(root, 1); len(final) != 1 || !strings.Contains(final[0], "Nothing happened.") {
				t.Errorf("a bystander's thread: %q", final)
			}
			if task := w.get(base + "/api/tasks/" + w.taskID(root)); !strings.Contains(task, `"attempt": 2`) {
				t.Errorf("a bystander was tried otherwise: %s", task)
			}
		}
	}
	if final := w.answers(roots[0], 1); len(final) != 1 || !strings.Contains(final[0], "died several times") {
		t.Errorf("the culprit's thread: %q", final)
	}
}
