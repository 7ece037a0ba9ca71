package workspace

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// What counts is the room that files take: an agent can make one of any length out of nothing, and must not have others cleared away by it.
func TestHolesTakeNoRoom(t *testing.T) {
	t.Parallel()
	w := newOrigin(t).files()
	scratch, err := w.Scratch("t")
	if err != nil {
		t.Fatal(err)
	}
	write(t, scratch+"/x", "12345")
	for _, name := range []string{"hole", "other"} {
		f, err := os.Create(filepath.Join(scratch, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(f.Truncate(math.MaxInt32<<10), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if got := threads(t, w)["t"].Size; got < 5 || got > 1<<20 {
		t.Errorf("%d bytes", got)
	}
}
