package workspace

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
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

// What nothing has used is not read again.
func TestSizeIsMeasuredOnce(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	w := o.files()
	scratch, err := w.Scratch("t")
	if err != nil {
		t.Fatal(err)
	}
	grow := func(size int) {
		t.Helper()
		write(t, filepath.Join(scratch, "x"), strings.Repeat("x", size))
	}
	size := func() int64 { return threads(t, w)["t"].Size }
	leave := func() {
		t.Helper()
		if _, err := w.Leave("t"); err != nil {
			t.Fatal(err)
		}
	}
	grow(1000)
	leave()
	before := size()
	grow(5000) // nothing does that
	if got := size(); before < 1000 || got != before {
		t.Errorf("%d bytes, then %d", before, got)
	}
	if _, err := w.Enter("t"); err != nil {
		t.Fatal(err)
	}
	if got := size(); got < 5000 {
		t.Errorf("%d bytes during a run", got)
	}
	grow(9000)
	if got := size(); got < 9000 {
		t.Errorf("%d bytes later in the run", got)
	}
	leave()
	if got := size(); got < 9000 {
		t.Errorf("%d bytes after the run", got)
	}
}

func TestSizeOfAMirrorFollowsItsUpdates(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	w := o.files()
	size := func() int64 {
		t.Helper()
		all, err := w.Mirrors(t.Context())
		if err != nil || len(all) != 1 {
			t.Fatalf("%+v, %v", all, err)
		}
		return all[0].Size
	}
	checkout(t, w, api)
	before := size()
	write(t, filepath.Join(w.mirror(api.Repo).dir, "x"), strings.Repeat("x", 5000))
	if got := size(); before == 0 || got != before {
		t.Errorf("%d bytes, then %d", before, got)
	}
	checkout(t, w, api)
	if got := size(); got < before+5000 {
		t.Errorf("%d bytes after an update", got)
	}
}

// A clean-up that is stopped while it measures has seen only a part of the files, and that is not taken for their size.
func TestInterruptedMeasurementIsNotKept(t *testing.T) {
	t.Parallel()
	dir, used := t.TempDir(), time.Now()
	for _, name := range []string{"a", "b", leftName} {
		write(t, filepath.Join(dir, name), strings.Repeat("x", 5000))
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	part := threadSize(stopped, dir, used)
	if all := threadSize(t.Context(), dir, used); all < 15000 || part >= all {
		t.Errorf("%d bytes were seen, and then %d, want at least 15000", part, all)
	}
}
