// Package container stands in for a container engine: it starts a program in its own namespaces, whose root is
// read-only but for three directories. They stay when the program starts again. The program that calls Wrap calls Enter
// if Argument is its first argument.
package container

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Container is what a worker that takes one task has to itself: its processes, which end with it, its shared memory,
// and the only directories that it can write to.
type Container struct {
	host string // name
	dir  string // of its directories
	proc string // where it sees the /proc of who started it; "": nowhere
}

// places are the directories that it can write to.
func (c *Container) places() []string {
	return []string{filepath.Join(c.dir, "state"), filepath.Join(c.dir, "t"), filepath.Join(c.dir, "home")}
}

// New makes the directories of a container in one of its name below dir. At proc, which may be "", it sees the caller's
// /proc.
func New(dir, name, proc string) (*Container, error) {
	c := &Container{name, filepath.Join(dir, name), proc}
	for _, place := range c.places() {
		if err := os.MkdirAll(place, 0o700); err != nil {
			return nil, fmt.Errorf("make a container: %w", err)
		}
	}
	return c, nil
}

// Args are those of a worker that takes one task and empties the container when it starts.
func (c *Container) Args() []string {
	return []string{"-once", "-empty=" + strings.Join(c.places(), ":")}
}

// Env lets a program write to the container's directories.
func (c *Container) Env() []string {
	at := c.places()
	return []string{"ERRAND_STATE_DIR=" + at[0], "TMPDIR=" + at[1], "HOME=" + at[2]}
}

// Argument makes the caller's program enter a container and become another program there.
const Argument = "enter-container"

// Wrap lets a command start in the container.
func (c *Container) Wrap(cmd *exec.Cmd) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd.Args = append([]string{self, Argument, c.host, c.dir, c.proc, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = self
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Cloneflags = unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	if uid, gid := os.Geteuid(), os.Getegid(); uid != 0 {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: gid, Size: 1}}
	}
	return nil
}

// Enter makes the new namespaces of this process a container and executes the program in it. The arguments are those
// after Argument. It returns only with an error.
func Enter(args []string) error {
	c, program := &Container{args[0], args[1], args[2]}, args[3:]
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("separate mounts: %w", err)
	}
	if c.proc != "" {
		if err := unix.Mount("/proc", c.proc, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("mount the caller's /proc: %w", err)
		}
	}
	for _, place := range c.places() {
		if err := unix.Mount(place, place, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount %s: %w", place, err)
		}
	}
	readOnly := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(-1, "/", unix.AT_RECURSIVE, readOnly); err != nil {
		return fmt.Errorf("make the root read-only: %w", err)
	}
	for _, place := range c.places() {
		if err := unix.MountSetattr(-1, place, 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}); err != nil {
			return fmt.Errorf("make %s writable: %w", place, err)
		}
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	if err := unix.Sethostname([]byte(c.host)); err != nil {
		return fmt.Errorf("name the container: %w", err)
	}
	return syscall.Exec(program[0], program, os.Environ())
}
