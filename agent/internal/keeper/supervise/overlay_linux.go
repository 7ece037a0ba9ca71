package supervise

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// overlay mounts what its arguments order and then executes the command in them, if there is one. It needs namespaces
// of its own for users and mounts, and CAP_SYS_ADMIN there; the command gets no capability, unless the user is root.
func overlay(args []string) error {
	var all []Overlay
	if len(args) == 0 {
		return errors.New("mount overlays: no list")
	}
	if err := json.Unmarshal([]byte(args[0]), &all); err != nil {
		return fmt.Errorf("mount overlays: %w", err)
	}
	for _, o := range all {
		if err := o.mount(); err != nil {
			return fmt.Errorf("mount %s above %s: %w", o.Upper, o.Lower, err)
		}
	}
	if len(args) == 1 {
		return nil
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	return fmt.Errorf("execute %s: %w", args[1], unix.Exec(args[1], args[1:], os.Environ()))
}

// mount mounts one overlay. Its options name descriptors, because a comma or a colon in a path would end it there.
func (o Overlay) mount() error {
	options := []string{"userxattr"} // an unprivileged user may set no other attributes than user.*, since Linux 5.11
	for _, part := range []struct{ option, path string }{
		{"lowerdir", o.Lower}, {"upperdir", o.Upper}, {"workdir", o.Work},
	} {
		fd, err := unix.Open(part.path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open %s: %w", part.path, err)
		}
		options = append(options, fmt.Sprintf("%s=/proc/self/fd/%d", part.option, fd))
	}
	return unix.Mount("overlay", o.At, "overlay", unix.MS_NODEV|unix.MS_NOSUID, strings.Join(options, ","))
}
