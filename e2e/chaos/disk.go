package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// diskSize is the size of the log disk: enough for all logs, and quickly filled.
const diskSize = "size=256m"

// disk holds the runs' logs. It is a small file system, so that it can be filled without affecting anything else.
// Without the right to mount one, it is a directory that is removed for a while: opening a log then fails too, but open
// logs continue to work.
type disk struct {
	dir     string
	mounted bool
}

// newDisk makes the directory.
func newDisk(dir string) (*disk, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make log disk: %w", err)
	}
	err := unix.Mount("chaos", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, diskSize+",mode=0700")
	return &disk{dir: dir, mounted: err == nil}, nil
}

// what describes the disk for the report.
func (d *disk) what() string {
	if d.mounted {
		return "tmpfs"
	}
	return "a directory that is removed for a while"
}

// fill leaves no free byte for a while.
func (d *disk) fill(ctx context.Context, lasts time.Duration) error {
	if !d.mounted {
		aside := d.dir + ".aside"
		if err := os.Rename(d.dir, aside); err != nil { //nolint:gosec // below the harness's directory
			return fmt.Errorf("fill log disk: %w", err)
		}
		pause(ctx, lasts)
		return d.putBack(aside)
	}
	ballast := filepath.Join(d.dir, ".ballast")
	f, err := os.Create(ballast) //nolint:gosec // likewise
	if err != nil {
		return fmt.Errorf("fill log disk: %w", err)
	}
	block := make([]byte, 64<<10)
	for err == nil {
		_, err = f.Write(block)
	}
	_ = f.Close()
	pause(ctx, lasts)
	if rerr := os.Remove(ballast); rerr != nil || !errors.Is(err, unix.ENOSPC) { //nolint:gosec // likewise
		return fmt.Errorf("fill log disk: %w", errors.Join(err, rerr))
	}
	return nil
}

// putBack restores the directory, also if it was created again in the meantime.
func (d *disk) putBack(aside string) error {
	made, err := os.ReadDir(d.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("empty log disk: %w", err)
	}
	for _, e := range made {
		if err := os.Rename(filepath.Join(d.dir, e.Name()), filepath.Join(aside, e.Name())); err != nil { //nolint:gosec // names that a directory has
			return fmt.Errorf("empty log disk: %w", err)
		}
	}
	if err := errors.Join(os.RemoveAll(d.dir), os.Rename(aside, d.dir)); err != nil { //nolint:gosec // below the harness's directory
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
