package workspace

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// The size on disk should count: an agent can create a sparse file of any length, and must not displace other
// threads with it.
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
