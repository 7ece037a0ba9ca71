//go:build mention

package main

import (
	"errors"
	"testing"

	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

// scripts/mention-files compares the coverage of the two tests below to find the files that one mention uses. TestMention
// is the test of what they do.

// TestIdleStart starts a standalone system that gets no work, and stops it after each of its loops has run.
func TestIdleStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.standalone()
	w.beats(4) // about as long as one mention takes
}

// TestOneMention answers one mention without tools, follow-ups or reads of the API.
func TestOneMention(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.model.Answer("total", modelfake.Turn{Text: "The total is right."})
	w.standalone()
	w.answers(w.mention("is the total right?", ""), 1)
}

// beats waits for n heartbeats of the only worker.
func (w *world) beats(n int) {
	w.Helper()
	client := w.admin()
	ctx := await.Context(w)
	for seen := map[float64]bool{}; len(seen) < n; {
		workers, err := client.ZRangeWithScores(ctx, "errand:workers", 0, -1).Result()
		if err != nil {
			w.Fatalf("wait for a heartbeat: %v", errors.Join(err, ctx.Err()))
		}
		for _, z := range workers {
			seen[z.Score] = true
		}
	}
}
