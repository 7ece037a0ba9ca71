package main

import (
	"testing"

	"github.com/errand-fleet/errand/internal/modelfake"
)

// scripts/mention-files compares the coverage of the two tests below to find the files that one mention uses.

// TestIdleStart starts and stops a standalone system that gets no work.
func TestIdleStart(t *testing.T) {
	t.Parallel()
	newWorld(t).standalone()
}

// TestOneMention answers one mention without tools, follow-ups or reads of the API.
func TestOneMention(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.model.Answer("total", modelfake.Turn{Text: "The total is right."})
	w.standalone()
	w.answers(w.mention("is the total right?", ""), 1)
}
