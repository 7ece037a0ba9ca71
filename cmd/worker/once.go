package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/errand-fleet/errand/cmd/internal/assemble"
	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/internal/dirtree"
)

// once is what the flags say about a worker that takes one task.
type once struct {
	chosen bool
	wait   time.Duration
	places []string // directories and files of the container that tasks can write to
}

// onceFlags declares the flags of a worker that takes one task.
func onceFlags(flags *flag.FlagSet) *once {
	o := &once{}
	flags.BoolVar(&o.chosen, "once", false, "take one task and exit; the code says why (docs/deploy.md)")
	flags.DurationVar(&o.wait, "wait", 0, "with -once: exit if no task comes for this `duration`; 0: no limit")
	flags.Func("empty", "with -once: the `directories`, or files, of this container that a task can write to, "+
		"separated by colons; everything in them is removed at the start", func(list string) error {
		for _, dir := range filepath.SplitList(list) {
			if !filepath.IsAbs(dir) || filepath.Clean(dir) == "/" {
				return fmt.Errorf("%q is not a directory of the container", dir)
			}
			o.places = append(o.places, filepath.Clean(dir))
		}
		return nil
	})
	return o
}

// begin removes what an earlier task may have left in this container. Without a sandbox it returns an error if a task
// could leave something elsewhere.
func (o *once) begin(c config.Config, options *assemble.Options) error {
	options.Wait = o.wait
	if c.Worker.Sandbox == config.SandboxNone {
		mounts, err := os.ReadFile("/proc/self/mountinfo")
		if err != nil {
			return fmt.Errorf("look at the container: %w", err)
		}
		if err := o.covers(string(mounts), canWrite); err != nil {
			return err
		}
	}
	for _, dir := range o.places {
		if err := empty(dir); err != nil {
			return fmt.Errorf("remove what an earlier task left: %w", err)
		}
	}
	if len(o.places) > 0 {
		removeSegments("/proc/sysvipc")
	}
	return nil
}

// kernelTypes are the types of file systems in which a task can leave no data.
var kernelTypes = []string{"proc", "sysfs", "cgroup", "cgroup2", "devpts"}

// covers returns an error if a task could leave something where nothing is emptied: in a mount that is neither
// read-only nor emptied nor the kernel's. A directory that a task cannot write to may have others in which it can, so
// only /dev and the directory of the control groups, which engines make, are searched for them.
func (o *once) covers(mounts string, writable func(path string) bool) error {
	var points, open []string
	for line := range strings.Lines(mounts) {
		fields := strings.Fields(line)
		end := slices.Index(fields, "-") // of the optional fields; the type follows
		if end < 6 || end+1 == len(fields) {
			continue
		}
		point := unescape(fields[4])
		points = append(points, point)
		if !slices.Contains(strings.Split(fields[5], ","), "ro") && !slices.Contains(kernelTypes, fields[end+1]) {
			open = append(open, point)
		}
	}
	for _, point := range open {
		elsewhere := func(path string) bool {
			return o.empties(path) || path != point && slices.Contains(points, path)
		}
		info, err := os.Stat(point)
		hidden := errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)
		searched := point == "/dev" || point == "/sys/fs/cgroup" || err == nil && !info.IsDir()
		if o.empties(point) || hidden || searched && !keeps(point, elsewhere, writable) {
			continue
		}
		return fmt.Errorf("a task could leave files for the next one in %s: without a sandbox, -once needs a "+
			"container whose root is read-only and whose other mounts are read-only or named by -empty", point)
	}
	return nil
}

// empties reports whether a path is in what is emptied.
func (o *once) empties(path string) bool {
	return slices.ContainsFunc(o.places, func(place string) bool {
		rel, err := filepath.Rel(place, path)
		return err == nil && filepath.IsLocal(rel)
	})
}

// keeps reports whether a task could leave something in a file or anywhere in a directory, which may have devices. It
// does not look elsewhere.
func keeps(root string, elsewhere, writable func(path string) bool) bool {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err // it cannot be searched
		case elsewhere(path) && d.IsDir():
			return fs.SkipDir
		case elsewhere(path) || d.Type()&(fs.ModeCharDevice|fs.ModeSymlink) != 0 || !writable(path):
			return nil
		}
		return fs.ErrPermission
	}) != nil
}

// canWrite reports whether a task can write to a path or give itself the right to.
func canWrite(path string) bool {
	var s unix.Stat_t
	return unix.Access(path, unix.W_OK) == nil || unix.Stat(path, &s) == nil && int(s.Uid) == os.Geteuid()
}

// unescape replaces what the kernel escapes in the names of mount points.
func unescape(name string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(name)
}

// empty removes everything in a directory or file, which may be missing. A task may have taken its own rights to the
// directory away.
func empty(dir string) error {
	_ = dirtree.Permit(dir) // unless it is another user's, or a file
	entries, err := os.ReadDir(dir)
	if errors.Is(err, unix.ENOTDIR) {
		return os.Truncate(dir, 0)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if err := dirtree.Remove(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// removeSegments removes the System V segments, semaphores and queues of this user, which outlive processes and, in a
// pod, containers. Those of others are not removed.
func removeSegments(dir string) {
	for name, call := range map[string]uintptr{"shm": unix.SYS_SHMCTL, "sem": unix.SYS_SEMCTL, "msg": unix.SYS_MSGCTL} {
		list, _ := os.ReadFile(filepath.Join(dir, name)) // a kernel without them has no list
		for line := range bytes.Lines(list) {
			fields := strings.Fields(string(line))
			if len(fields) < 2 {
				continue
			}
			id, err := strconv.Atoi(fields[1])
			if err != nil {
				continue // the heading
			}
			if name == "sem" { // its third argument is the command
				_, _, _ = unix.Syscall(call, uintptr(id), 0, unix.IPC_RMID)
			} else {
				_, _, _ = unix.Syscall(call, uintptr(id), unix.IPC_RMID, 0)
			}
		}
	}
}
