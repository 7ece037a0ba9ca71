package subject

import (
	"fmt"
	"testing"
)

func TestStateIsBounded(t *testing.T) {
	t.Parallel()
	var p State
	for i := range 3 * maxBegun {
		if !p.Begin(fmt.Sprint(i), "a") || p.Begin(fmt.Sprint(i), "b") || !p.Begin(fmt.Sprint(i), "a") ||
			len(p.Begun) > maxBegun {
			t.Fatalf("after %d: %d keys", i, len(p.Begun))
		}
	}
}
