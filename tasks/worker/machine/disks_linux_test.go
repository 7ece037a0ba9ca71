package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A disk that does not answer makes the worker unable too, and it is asked no second time meanwhile.
func TestDiskDoesNotAnswer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := newDisks([]string{dir, dir, ""}, unix.Statfs)
	d.patience = time.Millisecond
	stuck := &probe{done: make(chan struct{})}
	d.probing[dir] = stuck
	if bad := d.problem(t.Context(), true); bad == nil || !strings.Contains(bad.problem, "not answered") || bad.full {
		t.Errorf("found: %+v", bad)
	}
	if d.probing[dir] != stuck || len(d.dirs) != 1 {
		t.Errorf("probes: %v of %q", d.probing, d.dirs)
	}
	delete(d.probing, dir)
	d.patience = time.Minute
	if bad := d.problem(t.Context(), true); bad != nil && !bad.full {
		t.Errorf("found: %+v", bad)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A failure of the machine is told from one that a repository's contents cause, and from one of the network.
func TestFaultsOfTheMachine(t *testing.T) {
	t.Parallel()
	of := func(e syscall.Errno) error {
		return fmt.Errorf("clone: %w", &fs.PathError{Op: "open", Path: "x", Err: e})
	}
	remote := func(e syscall.Errno) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", e)}
	}
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"read-only":        {of(unix.EROFS), true},
		"input and output": {of(unix.EIO), true},
		"rights":           {of(unix.EACCES), true},
		"full":             {of(unix.ENOSPC), true},
		"files":            {of(unix.EMFILE), true},
		"damaged":          {of(unix.EUCLEAN), true},
		"processes":        {os.NewSyscallError("fork", unix.EAGAIN), true},
		"files of sockets": {remote(unix.EMFILE), true},
		"refused":          {remote(unix.ECONNREFUSED), false},
		"missing":          {of(unix.ENOENT), false},
		"long name":        {of(unix.ENAMETOOLONG), false},
		"a pipe's name":    {of(unix.ENXIO), false},
		"many arguments":   {of(unix.E2BIG), false},
		"something else":   {errors.New("x"), false},
	} {
		if got := LocalFault(c.err); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
