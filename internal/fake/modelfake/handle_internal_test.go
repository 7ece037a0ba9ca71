package modelfake

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// When a client disconnects, net/http cancels the context of its request. The test needs no socket: it is about what
// happens then.
func TestNothingOutlivesTheClient(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		turn   Turn
		stream bool
	}{
		"gate":             {Turn{Gate: make(chan struct{})}, true},
		"hang":             {Turn{Text: "so far", Hang: true}, true},
		"hang, not stream": {Turn{Hang: true}, false},
		"pace":             {Turn{Text: "so far", Pace: time.Hour}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := New()
			defer s.Close()
			s.Answer("", c.turn)
			ctx, leave := context.WithCancel(t.Context())
			leave()
			if err := s.model(ctx, httptest.NewRecorder(), call{Stream: c.stream}); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want %v", err, context.Canceled)
			}
		})
	}
}

func TestPaceIsBetweenDeltas(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turn := Turn{Chunks: []string{"a", "b", "c"}}
		begin := time.Now()
		err := stream{httptest.NewRecorder(), time.Minute}.send(t.Context(), turn.answer("m", conversation{}), turn)
		if took := time.Since(begin); err != nil || took != 3*time.Minute {
			t.Errorf("took %v for 3 deltas, %v", took, err)
		}
	})
}
