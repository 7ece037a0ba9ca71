package gateway

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A call that was broken off is charged with the answer that the model can have written since it began, and with no
// more than the call allowed. Its question is estimated only if the model has reported nothing about it.
func TestChargeOfABrokenOffCall(t *testing.T) {
	t.Parallel()
	const size, tokens = 4000, 4000 / bytesPerToken
	for name, c := range map[string]struct {
		reported  Usage
		maxTokens int64
		want      Usage
	}{
		"bounded by its maximum": {Usage{Input: 7}, 10, Usage{Input: 7, Output: 10}},
		"bounded by the time":    {Usage{Input: 7}, 1e6, Usage{Input: 7, Output: 60 * tokensPerSecond}},
		"reports more":           {Usage{Input: 7, Output: 20}, 10, Usage{Input: 7, Output: 20}},
		"reports nothing":        {Usage{}, 10, Usage{Input: tokens, Output: 10}},
		"reads the cache":        {Usage{CacheRead: 5}, 10, Usage{CacheRead: 5, Output: 10}},
		"writes the cache":       {Usage{CacheCreation: 5}, 10, Usage{CacheCreation: 5, Output: 10}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				seen := &traffic{}
				broken := &call{
					question: question{Model: "claude-opus-5", MaxTokens: c.maxTokens, Stream: true},
					size:     size, traffic: seen, lease: leased(), began: time.Now(), first: time.Now(), asked: true,
				}
				if err := broken.reserve(t.Context()); err != nil {
					t.Fatal(err)
				}
				broken.update(Bill{Usage: c.reported}, "", false)
				<-time.After(time.Minute)
				broken.settle()
				if seen.api.Usage != c.want {
					t.Errorf("charged %+v, want %+v", seen.api.Usage, c.want)
				}
			})
		})
	}
}

// A call that has to wait for the end of another one starts when that has ended.
func TestCallWaitsForTheEndOfAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		seen := &traffic{max: 0.001}
		question := question{Model: "claude-opus-5", MaxTokens: 100}
		one, other := &call{question: question, traffic: seen}, &call{question: question, traffic: seen}
		if err := one.reserve(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		reserved := make(chan error, 1)
		go func() { reserved <- other.reserve(ctx) }()
		synctest.Wait()
		select {
		case err := <-reserved:
			t.Fatalf("the other did not wait: %v", err)
		default:
		}
		one.settle()
		if err := <-reserved; err != nil {
			t.Errorf("the other still waits: %v", err)
		}
	})
}

// A note is written once, and a run has a bounded number of them.
func TestNotesOfARun(t *testing.T) {
	t.Parallel()
	seen := &traffic{}
	if !seen.noteOnce("a") || seen.noteOnce("a") || !seen.noteOnce("b") {
		t.Error("a note is written again, or not at all")
	}
	for n := range maxNoted {
		seen.noteOnce(strconv.Itoa(n))
	}
	if seen.noteOnce("c") || len(seen.noted) > maxNoted {
		t.Errorf("%d notes", len(seen.noted))
	}
}

// The run is told which beta header is dropped: an unknown one, once.
func TestUnknownBetasAreNoted(t *testing.T) {
	t.Parallel()
	var notes []string
	g := &Gateway{note: func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }}
	for range 2 {
		h := http.Header{"Anthropic-Beta": {betas[0] + ", other-1"}}
		g.cleanBetas(h)
		if got := h.Get("Anthropic-Beta"); got != betas[0] {
			t.Errorf("passed %q", got)
		}
	}
	if len(notes) != 1 || !strings.Contains(notes[0], "other-1") {
		t.Errorf("noted %q", notes)
	}
}
