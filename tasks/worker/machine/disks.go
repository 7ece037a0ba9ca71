package machine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// disks are the directories whose file systems a run needs. It is safe for concurrent use.
type disks struct {
	dirs     []string
	statfs   func(dir string, into *unix.Statfs_t) error
	patience time.Duration // how long a probe may take

	mu      sync.Mutex
	probing map[string]*probe // by directory: probes that have not ended, because a file system may not answer
}

// probe is one attempt to use a directory.
type probe struct {
	done chan struct{} // closed at its end
	err  error         // set before
}

// diskProblem says why no run can use a disk.
type diskProblem struct {
	problem, sentence, remedy string // as in agent.Health
	full                      bool   // it has no room, which a run can have caused
}

// The least free space with which a worker takes tasks. A worker that takes none needs twice as much to begin again.
const (
	leastBytes = 256 << 20
	leastFiles = 1000
)

// probePatience is how long a file system may take to store, return and remove a small file. Under load a healthy disk
// takes seconds.
const probePatience = 30 * time.Second

func newDisks(dirs []string, statfs func(string, *unix.Statfs_t) error) *disks {
	var list []string
	for _, dir := range dirs {
		if dir != "" && !slices.Contains(list, dir) {
			list = append(list, dir)
		}
	}
	return &disks{dirs: list, statfs: statfs, patience: probePatience, probing: map[string]*probe{}}
}

// problem uses each directory as a run does, and returns why that failed; nil if it did not. able says that the worker
// takes tasks. The end of ctx ends the wait without a finding.
func (d *disks) problem(ctx context.Context, able bool) *diskProblem {
	var probes []*probe
	for _, dir := range d.dirs {
		probes = append(probes, d.begin(dir))
	}
	late := time.NewTimer(d.patience)
	defer late.Stop()
	for i, p := range probes {
		answered := p.await(ctx, late.C)
		if !answered && ctx.Err() != nil {
			return nil
		}
		if !answered {
			return unusable(d.dirs[i], fmt.Errorf("it has not answered for %s", d.patience))
		}
		if p.err != nil {
			return unusable(d.dirs[i], p.err)
		}
	}
	return d.full(able)
}

// await returns true once the probe has ended, and false if the time or the context is over before.
func (p *probe) await(ctx context.Context, late <-chan time.Time) bool {
	select {
	case <-p.done:
		return true
	case <-late:
	case <-ctx.Done():
	}
	select {
	case <-p.done: // after a pause of the whole machine both are over
		return true
	default:
		return false
	}
}

// begin starts a probe of a directory, unless an earlier one has not ended.
func (d *disks) begin(dir string) *probe {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.probing[dir]; p != nil {
		return p
	}
	p := &probe{done: make(chan struct{})}
	d.probing[dir] = p
	go func() {
		p.err = use(dir)
		d.mu.Lock()
		delete(d.probing, dir)
		d.mu.Unlock()
		close(p.done)
	}()
	return p
}

// use writes, stores and reads a file in a directory. The file has no name any more by then, so that nothing is left of
// it if the process dies.
func use(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".probe-*")
	if err != nil {
		return err
	}
	defer f.Close()
	if err := os.Remove(f.Name()); err != nil {
		return err
	}
	text := []byte("errand looks whether this disk can be used")
	if _, err := f.Write(text); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	back, err := io.ReadAll(io.NewSectionReader(f, 0, int64(len(text))))
	if err != nil {
		return err
	}
	if !bytes.Equal(back, text) {
		return errors.New("it returns something else than what was written")
	}
	return nil
}

// unusable says that a directory cannot be used.
func unusable(dir string, err error) *diskProblem {
	p := &diskProblem{
		problem:  fmt.Sprintf("the disk of %s cannot be used: %v", dir, err),
		sentence: "The worker's disk cannot be used.",
		remedy:   "make the directory writable for the worker's user; the kernel's log may say what the disk lacks",
	}
	if outOfFiles(err) {
		p.sentence = "The worker has too many open files."
		p.remedy = "raise its limit of open files (ulimit -n, LimitNOFILE=), or lower ERRAND_CONCURRENCY"
	}
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		p.full, p.sentence, p.remedy = true, diskFull, freeSpace
	}
	return p
}

const (
	diskFull  = "The worker's disk is full."
	freeSpace = "free space there, or keep fewer clones and logs (ERRAND_KEEP_CLONES_GB, ERRAND_KEEP_LOGS_GB)"
)

// full returns which disk has too little room for another run, or nil.
func (d *disks) full(able bool) *diskProblem {
	least := uint64(2)
	if able {
		least = 1
	}
	for _, dir := range d.dirs {
		var s unix.Statfs_t
		if d.statfs(dir, &s) != nil {
			continue
		}
		problem := ""
		free := s.Bavail * uint64(s.Bsize) //nolint:gosec // a size is positive
		switch {
		case free < least*leastBytes:
			problem = fmt.Sprintf("the disk of %s has %d MiB left", dir, free>>20)
		case s.Files > 0 && s.Ffree < least*leastFiles: // some file systems do not count files
			problem = fmt.Sprintf("the disk of %s has room for %d files only", dir, s.Ffree)
		default:
			continue
		}
		return &diskProblem{problem: problem, sentence: diskFull, remedy: freeSpace, full: true}
	}
	return nil
}

// structureNeedsCleaning is EUCLEAN, which the tables of other systems do not have.
const structureNeedsCleaning = syscall.Errno(117)

// ofMachine are the errors by which a machine says that its disks, memory or limits fail. Others may come from the
// names and the contents of a repository's files.
var ofMachine = []error{
	unix.EIO, unix.EROFS, unix.ESTALE, structureNeedsCleaning,
	unix.ENOSPC, unix.EDQUOT, unix.ENOMEM, unix.EAGAIN, unix.EACCES,
}

// LocalFault reports whether an error is one of this machine.
func LocalFault(err error) bool {
	if outOfFiles(err) {
		return true
	}
	if _, remote := errors.AsType[*net.OpError](err); remote {
		return false
	}
	errno, ok := errors.AsType[syscall.Errno](err)
	return ok && slices.ContainsFunc(ofMachine, func(e error) bool { return errors.Is(errno, e) })
}

func outOfFiles(err error) bool { return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) }
