package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// The size of the log disk, and its number of inodes: enough for all logs and for workers to take tasks (they want
// 512 MiB), and quickly used up.
const (
	diskSize   = 1 << 30
	diskInodes = 20_000
)

// disk holds the runs' logs. It is a small file system in a file, so that it can be filled and frozen without affecting
// anything else. Without the right to mount one, it is a directory that is removed for a while: opening a log then
// fails too, but open logs continue to work.
type disk struct {
	dir     string
	mounted bool
}

// newDisk makes the directory.
func newDisk(dir string) (*disk, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make log disk: %w", err)
	}
	image := dir + ".img"
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		return nil, fmt.Errorf("make log disk: %w", err)
	}
	if err := os.Truncate(image, diskSize); err != nil {
		return nil, fmt.Errorf("make log disk: %w", err)
	}
	d := &disk{dir: dir}
	if exec.Command("mkfs.ext4", "-q", "-N", itoa(diskInodes), image).Run() == nil { //nolint:noctx // it takes no time
		d.mounted = exec.Command("mount", "-o", "loop,nosuid,nodev", image, dir).Run() == nil //nolint:noctx // likewise
	}
	if d.mounted {
		return d, os.Chmod(dir, 0o700) //nolint:gosec // a directory
	}
	return d, nil
}

// what describes the disk for the report.
func (d *disk) what() string {
	if d.mounted {
		return "ext4"
	}
	return "a directory that is removed for a while"
}

// fill leaves no free byte for a while.
func (d *disk) fill(ctx context.Context, lasts time.Duration) error {
	return d.exhaust(ctx, lasts, func(ballast string) error {
		f, err := os.Create(filepath.Join(ballast, "bytes"))
		if err != nil {
			return err
		}
		defer f.Close()
		var at, step int64 = 0, 64 << 20
		for step > 0 {
			if err = unix.Fallocate(int(f.Fd()), 0, at, step); err != nil {
				step /= 2
				continue
			}
			at += step
		}
		return err
	})
}

// crowd leaves no free inode for a while.
func (d *disk) crowd(ctx context.Context, lasts time.Duration) error {
	return d.exhaust(ctx, lasts, func(ballast string) error {
		for n := 0; ; n++ {
			f, err := os.Create(filepath.Join(ballast, itoa(n)))
			if err != nil {
				return err
			}
			_ = f.Close()
		}
	})
}

// exhaust uses something up in a directory until there is no more, and gives it back after a while.
func (d *disk) exhaust(ctx context.Context, lasts time.Duration, use func(ballast string) error) error {
	if !d.mounted {
		return d.takeAway(ctx, lasts)
	}
	ballast := filepath.Join(d.dir, ".ballast")
	if err := os.Mkdir(ballast, 0o700); err != nil {
		return fmt.Errorf("exhaust log disk: %w", err)
	}
	err := use(ballast)
	pause(ctx, lasts)
	if rerr := os.RemoveAll(ballast); rerr != nil || !errors.Is(err, unix.ENOSPC) {
		return fmt.Errorf("exhaust log disk: %w", errors.Join(err, rerr))
	}
	return nil
}

// Requests to a file system, of linux/fs.h: finish all writes and let further ones wait; continue.
const (
	fiFreeze = 0xc0045877
	fiThaw   = 0xc0045878
)

// stall lets all writes wait for a while.
func (d *disk) stall(ctx context.Context, lasts time.Duration) error {
	if !d.mounted {
		return d.takeAway(ctx, lasts)
	}
	f, err := os.Open(d.dir)
	if err != nil {
		return fmt.Errorf("stall log disk: %w", err)
	}
	defer f.Close()
	if err := unix.IoctlSetInt(int(f.Fd()), fiFreeze, 0); err != nil {
		return fmt.Errorf("stall log disk: %w", err)
	}
	pause(ctx, lasts)
	if err := unix.IoctlSetInt(int(f.Fd()), fiThaw, 0); err != nil {
		return fmt.Errorf("let log disk continue: %w", err)
	}
	return nil
}

// takeAway moves the directory away for a while.
func (d *disk) takeAway(ctx context.Context, lasts time.Duration) error {
	aside := d.dir + ".aside"
	if err := os.Rename(d.dir, aside); err != nil {
		return fmt.Errorf("take log disk away: %w", err)
	}
	pause(ctx, lasts)
	return d.putBack(aside)
}

// putBack restores the directory, also if it was created again in the meantime.
func (d *disk) putBack(aside string) error {
	made, err := os.ReadDir(d.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("empty log disk: %w", err)
	}
	for _, e := range made {
		if err := os.Rename(filepath.Join(d.dir, e.Name()), filepath.Join(aside, e.Name())); err != nil {
			return fmt.Errorf("empty log disk: %w", err)
		}
	}
	if err := errors.Join(os.RemoveAll(d.dir), os.Rename(aside, d.dir)); err != nil {
		return fmt.Errorf("empty log disk: %w", err)
	}
	return nil
}

// remove unmounts the file system. Its content is lost unless keep names a directory to copy it to.
func (d *disk) remove(keep string) error {
	if !d.mounted {
		return nil
	}
	if keep != "" {
		if err := os.CopyFS(keep, os.DirFS(d.dir)); err != nil {
			return fmt.Errorf("keep logs: %w", err)
		}
	}
	if err := unix.Unmount(d.dir, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("remove log disk: %w", err)
	}
	return nil
}
