package await

import (
	"context"
	"testing"
)

func TestUntil(t *testing.T) {
	t.Parallel()
	looks := 0
	Until(t, "the third look", func() bool { looks++; return looks == 3 })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if looks != 3 || Holds(ctx, func() bool { return false }) {
		t.Errorf("%d looks, or a wait without an end", looks)
	}
}
