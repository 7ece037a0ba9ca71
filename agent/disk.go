package agent

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/errand-fleet/errand/agent/internal/keeper"
)

// A run's files are measured when the file systems have grown, and from time to time in any case: what the run adds
// does not show if other runs remove as much. Measurements take a tenth of the time at most, or a hundredth if the file
// systems do not grow.
const (
	diskPoll  = time.Second     // between looks at how much the file systems hold
	diskQuiet = 5 * time.Second // at least, between measurements if the file systems do not grow
	diskEvery = time.Minute     // at most, between those
)

// diskError ends a run that has added too much to the disk.
type diskError struct{ bytes int64 }

func (e diskError) Error() string {
	return fmt.Sprintf("the run has added %d MiB to the disk", e.bytes>>20)
}

// diskWatch measures what a run adds to the disk: to the directories where it may write, and in files that it has
// removed and still holds open.
type diskWatch struct {
	dirs   []string
	limit  int64         // bytes that the run may add; 0: any number, and nothing is measured
	before int64         // bytes in the directories when the run began to write
	begun  chan struct{} // closed when before is known: what is written earlier is not counted
	added  atomic.Int64  // the most that was seen, in bytes
}

// newDiskWatch returns a watch of a run of s, whose own directory is root.
func (r *Runner) newDiskWatch(s Spec, root string) *diskWatch {
	w := &diskWatch{dirs: append(s.further(), s.Dir, root), limit: r.cfg.MaxDisk, begun: make(chan struct{})}
	for _, l := range s.Layers {
		w.dirs = append(w.dirs, l.Changes)
	}
	return w
}

// begin measures what the directories hold before the run writes to them.
func (w *diskWatch) begin(ctx context.Context) {
	defer close(w.begun)
	if w.limit > 0 {
		w.before = w.size(ctx)
	}
}

// run measures, after begin, until ctx ends. If the processes of p add more than the run may, run calls exceeded and has
// p killed: while a CLI ends in an orderly way, its tools could fill the disk.
func (w *diskWatch) run(ctx context.Context, p *keeper.Process, exceeded func(error)) {
	if w.limit == 0 {
		return
	}
	held, measured, took := w.held(), time.Now(), time.Duration(0)
	tick := time.NewTicker(diskPoll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now, rest := w.held(), time.Since(measured)
		held = min(held, now)
		if grown := now-held >= w.limit/8; rest < 10*took || !grown && rest < min(diskEvery, max(diskQuiet, 100*took)) {
			continue
		}
		begun := time.Now()
		held = w.held() // before the measurement, so that nothing written meanwhile is missed
		added := w.size(ctx) + p.Unlinked() - w.before
		measured, took = time.Now(), time.Since(begun)
		if ctx.Err() != nil {
			return
		}
		w.added.Store(max(w.added.Load(), added))
		if added > w.limit {
			exceeded(diskError{added})
			p.Term(0)
			return
		}
	}
}

// held returns how many bytes the file systems of the run's directories hold, of all users.
func (w *diskWatch) held() (bytes int64) {
	seen := map[unix.Fsid]bool{}
	for _, dir := range w.dirs {
		var s unix.Statfs_t
		if unix.Statfs(dir, &s) == nil && !seen[s.Fsid] {
			seen[s.Fsid] = true
			bytes += int64(s.Blocks-s.Bfree) * int64(s.Bsize) //nolint:gosec,unconvert // far below 2^63; the types differ between systems
		}
	}
	return bytes
}

// size returns how many bytes of disk the run's files take. A file that vanishes meanwhile is left out.
func (w *diskWatch) size(ctx context.Context) (bytes int64) {
	for _, dir := range w.dirs {
		_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil //nolint:nilerr // it has vanished, or cannot be read, and so is not the run's
			}
			if info, err := d.Info(); err == nil {
				if s, ok := info.Sys().(*syscall.Stat_t); ok {
					bytes += s.Blocks * 512
				}
			}
			return ctx.Err()
		})
	}
	return bytes
}
