package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/errand-fleet/errand/agent/internal/keeper"
	"github.com/errand-fleet/errand/internal/dirtree"
)

// A run's files are measured when the file systems have grown, and from time to time in any case: what the run adds
// does not show if other runs remove as much. Measurements take a tenth of the time at most, or a hundredth if the file
// systems do not grow.
const (
	diskPoll  = time.Second     // between looks at how much the file systems hold
	diskQuiet = 5 * time.Second // at least, between measurements if the file systems do not grow
	diskEvery = time.Minute     // at most, between those

	diskPatience = 5 * time.Second // at most, before a run or a script begins to work
)

// More than this slows down the machine and each measurement, however little disk it takes.
const (
	maxEntries = 5_000_000 // files and directories that a run adds; those of a large repository are a million
	maxNested  = 512       // directories below one another; a measurement holds them open
)

var errTooMany = errors.New("too many files and directories")

// diskError ends a run that has added too much to the disk.
type diskError struct {
	bytes int64
	why   error // errTooMany, dirtree.ErrTooDeep or nil
}

func (e diskError) Error() string { return "the run has " + e.added() }

func (e diskError) added() string {
	switch {
	case errors.Is(e.why, errTooMany):
		return fmt.Sprintf("added more than %d files and directories", maxEntries)
	case errors.Is(e.why, dirtree.ErrTooDeep):
		return fmt.Sprintf("nested more than %d directories", maxNested)
	}
	return fmt.Sprintf("added %d MiB to the disk", e.bytes>>20)
}

// diskUse is what directories contain.
type diskUse struct{ bytes, entries int64 }

// diskWatch measures what a run adds to the disk: to the directories where it may write, and in files that it has
// removed and still holds open. A run may also hide files in descriptors that it has sent and not received; if it does
// so at two measurements in a row, the growth of the file systems counts as the run's.
type diskWatch struct {
	dirs   []string
	walk   dirtree.Walker
	limit  int64         // bytes that the run may add; 0: any number, and nothing is measured
	most   int64         // entries that the directories may have; 0: any number
	before diskUse       // of the directories when the run began to write
	begun  chan struct{} // closed when before is known: what is written earlier is not counted
	added  atomic.Int64  // the most that was seen, in bytes
}

// newDiskWatch returns a watch of a run of s, whose own directory is root.
func (r *Runner) newDiskWatch(s Spec, root string) *diskWatch {
	w := &diskWatch{
		dirs: append(s.further(), s.Dir, root), walk: r.walk, limit: r.cfg.MaxDisk, begun: make(chan struct{}),
	}
	for _, l := range s.Layers {
		w.dirs = append(w.dirs, l.Changes)
	}
	return w
}

// begin measures what the directories hold before the run writes to them.
func (w *diskWatch) begin(ctx context.Context) {
	defer close(w.begun)
	if w.limit > 0 {
		w.before, _ = w.size(ctx) // too deep is found again
		w.most = w.before.entries + maxEntries
	}
}

// wait waits until begin has measured, so that all that the run or the script writes is counted. A large directory on a
// slow disk does not delay it for longer than limit.
func (w *diskWatch) wait(limit time.Duration) {
	select {
	case <-w.begun:
	case <-time.After(limit):
	}
}

// beginWithin calls begin and waits for it, at most for limit. stop ends begin.
func (w *diskWatch) beginWithin(ctx context.Context, limit time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	go w.begin(ctx)
	w.wait(limit)
	return func() {
		cancel()
		<-w.begun
	}
}

// run measures, once begin has, until ctx ends. If the processes of p add more than the run may, run calls exceeded and
// has p killed: while a CLI ends in an orderly way, its tools could fill the disk.
func (w *diskWatch) run(ctx context.Context, p *keeper.Process, exceeded func(error)) {
	if w.limit == 0 {
		return
	}
	select {
	case <-w.begun:
	case <-ctx.Done():
		return
	}
	held := w.held()
	last := diskMeasurement{at: time.Now(), held: held}
	tick := time.NewTicker(diskPoll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := w.held()
		last.held = min(last.held, now)
		if !last.over(now-last.held >= w.limit/8) {
			continue
		}
		next, added, err := w.measure(ctx, p)
		if ctx.Err() != nil {
			return
		}
		if next.waiting && last.waiting { // what their files take may be all that the file systems have grown by
			added = max(added, next.held-held)
		}
		last = next
		w.added.Store(max(w.added.Load(), added))
		if added > w.limit || err != nil {
			exceeded(diskError{added, err})
			p.Term(0)
			return
		}
	}
}

// diskMeasurement is when and in which state of the machine a run's files were measured.
type diskMeasurement struct {
	at      time.Time     // its end
	took    time.Duration // from its begin
	held    int64         // what the file systems have held at least since its begin, in bytes
	waiting bool          // the run had descriptors that were sent and not received
}

// over reports whether the pause after a measurement is over, which is shorter if the file systems have grown.
func (m diskMeasurement) over(grown bool) bool {
	rest := time.Since(m.at)
	if rest < 10*m.took {
		return false
	}
	return grown || rest >= min(diskEvery, max(diskQuiet, 100*m.took))
}

// measure measures how many bytes the run has added in files that it has, or has removed and still holds open.
func (w *diskWatch) measure(ctx context.Context, p *keeper.Process) (m diskMeasurement, added int64, err error) {
	begun := time.Now()
	m.held = w.held() // before the measurement, so that nothing written meanwhile is missed
	use, err := w.size(ctx)
	unlinked, waiting := p.Held()
	m.at, m.took, m.waiting = time.Now(), time.Since(begun), waiting > 0
	return m, use.bytes + unlinked - w.before.bytes, err
}

// held returns how many bytes the file systems of the run's directories hold, of all users.
func (w *diskWatch) held() (bytes int64) {
	seen := map[unix.Fsid]bool{}
	for _, dir := range w.dirs {
		var s unix.Statfs_t
		if unix.Statfs(dir, &s) == nil && !seen[s.Fsid] {
			seen[s.Fsid] = true
			bytes += int64(s.Blocks-s.Bfree) * int64(s.Bsize) //nolint:gosec,unconvert // types differ by system
		}
	}
	return bytes
}

// size measures the run's files. A file that vanishes meanwhile is left out. An error says that there are more than a
// run may have, and that not all were measured.
func (w *diskWatch) size(ctx context.Context) (use diskUse, err error) {
	count := func(parent *os.Root, e fs.DirEntry) error {
		if info, err := parent.Lstat(e.Name()); err == nil {
			if s, ok := info.Sys().(*syscall.Stat_t); ok {
				use.bytes += s.Blocks * 512
			}
		}
		if use.entries++; w.most > 0 && use.entries > w.most {
			return errTooMany
		}
		return ctx.Err()
	}
	for _, dir := range w.dirs {
		err = w.walk(dir, maxNested, count)
		if errors.Is(err, errTooMany) || errors.Is(err, dirtree.ErrTooDeep) {
			return use, err
		}
	}
	return use, nil
}
