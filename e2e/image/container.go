package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// image is a mounted image and its start command.
type image struct {
	root     string // the directory its files are mounted at
	uid, gid int
	Config   struct {
		User        string
		Env         []string
		Entrypoint  []string
		Cmd         []string
		WorkingDir  string
		Healthcheck struct{ Test []string }
	} `json:"config"`
}

// readImage parses the output of `buildah inspect --type image`.
func readImage(root, file string) (image, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return image{}, fmt.Errorf("read the image's configuration: %w", err)
	}
	var all struct{ Docker image }
	if err := json.Unmarshal(text, &all); err != nil {
		return image{}, fmt.Errorf("read the image's configuration: %w", err)
	}
	i := all.Docker
	if _, err := fmt.Sscanf(i.Config.User, "%d:%d", &i.uid, &i.gid); err != nil || i.uid == 0 {
		return image{}, fmt.Errorf("the image's user is %q, want UID:GID that are not root's", i.Config.User)
	}
	i.root = root
	return i, nil
}

// arguments returns the arguments of bubblewrap. The image's setpriv drops all rights after the mounts and executes the
// image's entrypoint, which is then the first process of the container. Its /proc is whole, as the Compose file asks
// for; bubblewrap's own has covered parts.
func (i image) arguments(s spec) []string {
	args := []string{"--ro-bind", i.root, "/", "--dev", "/dev"}
	args = append(args, s.mounts...)
	args = append(args, "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--as-pid-1", "--die-with-parent", "--chdir",
		i.Config.WorkingDir)
	args = append(args, "sh", "-c", `mount -t proc proc /proc && exec "$@"`, "sh")
	args = append(args, i.user()...)
	args = append(args, i.Config.Entrypoint...)
	if s.command == nil {
		return append(args, i.Config.Cmd...)
	}
	return append(args, s.command...)
}

// user is the command that gives up all rights and becomes the image's user. setpriv has its capabilities until it
// executes something, and what it executes could be read then: env has none any more, like an engine that drops them
// all.
func (i image) user() []string {
	return []string{
		"setpriv", fmt.Sprintf("--reuid=%d", i.uid), fmt.Sprintf("--regid=%d", i.gid), "--clear-groups",
		"--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", "env",
	}
}

// container is a started container. Its methods are for one goroutine.
type container struct {
	cmd    *exec.Cmd
	status *os.File // bubblewrap's reports; it writes one more at the end, and must find a reader then
	first  int      // the pid of its first process
}

// start starts a container with its output in out.
func (i image) start(s spec, out io.Writer) (*container, error) {
	status, child, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start container: %w", err)
	}
	cmd := exec.Command("bwrap", append([]string{"--json-status-fd", "3"}, i.arguments(s)...)...) //nolint:noctx // it ends when stop says so
	cmd.Env = append(slices.Clip(i.Config.Env), s.env...)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = out, out, []*os.File{child}
	c := &container{cmd: cmd, status: status}
	err = cmd.Start()
	_ = child.Close()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start container: %w", err), status.Close())
	}
	var begun struct {
		Child int `json:"child-pid"`
	}
	if err := json.NewDecoder(status).Decode(&begun); err != nil || begun.Child == 0 {
		err = fmt.Errorf("start container: bubblewrap reported no PID: %w", err)
		return nil, errors.Join(err, cmd.Process.Kill(), cmd.Wait(), status.Close())
	}
	c.first = begun.Child
	return c, nil
}

// run waits for a container to end and returns its stdout. An error contains all output.
func (i image) run(ctx context.Context, s spec) (string, error) {
	cmd := exec.CommandContext(ctx, "bwrap", i.arguments(s)...)
	cmd.Env = append(slices.Clip(i.Config.Env), s.env...)
	var out, said strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("run %s: %w\n%s%s", strings.Join(s.command, " "), err,
			out.String(), said.String())
	}
	return out.String(), nil
}

// exec runs a command beside the first process of a container, as an engine does with health checks and `docker exec`.
// nsenter gives up its capabilities with its user and executes the command itself: no other program has the
// environment, not even for a moment.
func (i image) exec(ctx context.Context, c *container, s spec, command ...string) error {
	args := []string{
		"--target", fmt.Sprint(c.first), "--mount", "--pid", "--ipc", "--uts", "--root", "--wd",
		"--setgid", fmt.Sprint(i.gid), "--setuid", fmt.Sprint(i.uid),
	}
	cmd := exec.CommandContext(ctx, "nsenter", append(args, command...)...)
	cmd.Env = append(slices.Clip(i.Config.Env), s.env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("run %s: %w\n%s", strings.Join(command, " "), err, out)
	}
	return nil
}

// stop stops the container like `docker stop` and returns its exit status.
func (c *container) stop(grace time.Duration) error {
	defer c.status.Close()
	if err := syscall.Kill(c.first, syscall.SIGTERM); err != nil {
		return errors.Join(fmt.Errorf("stop container: %w", err), c.cmd.Wait())
	}
	late := time.AfterFunc(grace, func() { _ = c.cmd.Process.Kill() })
	defer late.Stop()
	if err := c.cmd.Wait(); err != nil {
		return fmt.Errorf("stop container: %w", err)
	}
	return nil
}
