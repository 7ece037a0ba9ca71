package main

import (
	"strings"
	"testing"
)

// Redis loses everything while a run is live: its thread still gets the ending, once.
func TestRedisIsEmptied(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	alive := w.stubborn()
	w.env["ERRAND_RUN_LIMIT"] = "3s"
	base := w.frontDoor()
	w.process()
	root := w.mention("go", "")
	alive.up(w)
	client := w.admin()
	if err := client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	alive.gone(w)
	if final := w.answers(root, 1); !strings.Contains(final[0], "time limit of 3s") {
		t.Errorf("final message: %q", final)
	}
	second := w.mention("again", root)
	if final := w.answers(root, 2); len(final) != 2 ||
		!strings.Contains(w.get(base+"/api/tasks/"+w.taskID(second)), "timed_out") {
		t.Errorf("after the next: %q", final)
	}
	if health := w.get(base + "/api/health"); !strings.Contains(health, "Redis lost its data at ") {
		t.Errorf("doctor reports: %s", health)
	}
}
