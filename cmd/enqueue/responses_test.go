package main

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
)

// sent returns an event as the API sends it.
func sent(t *testing.T, e agent.Event) (got event) {
	t.Helper()
	text, err := json.Marshal(e)
	if err == nil {
		err = json.Unmarshal(text, &got)
	}
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// What the client knows of tasks by itself is what the server knows.
func TestWordsOfTasks(t *testing.T) {
	t.Parallel()
	codes := map[tasks.EndingClass]error{
		tasks.ClassDone: nil, tasks.ClassLimit: exitTaskLimit, tasks.ClassStopped: exitTaskStopped,
		tasks.ClassRefused: exitTaskRefused, tasks.ClassFailed: exitTaskFailed,
	}
	for _, kind := range append(tasks.EndingKinds(), "of a newer version") {
		if got, want := exitForEnding(string(kind)), codes[kind.Info().Class]; !errors.Is(got, want) {
			t.Errorf("%s: %v, want %v", kind, got, want)
		}
	}
	pause, _, err := newRoot(newTerminal(world{getenv: func(string) string { return "" }})).Find([]string{"pause"})
	if err != nil || len(pause.ValidArgs) != len(tasks.Classes) {
		t.Fatalf("%q, %v", pause.ValidArgs, err)
	}
	for i, class := range tasks.Classes {
		if pause.ValidArgs[i] != class {
			t.Errorf("pause completes %q, not %s", pause.ValidArgs, class)
		}
	}
}
