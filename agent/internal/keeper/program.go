package keeper

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/errand-fleet/errand/agent/internal/keeper/supervise"
)

// Program is the program that the keepers of a worker execute: the file errand-keeper beside the worker's own or, if
// there is none, the worker's own program again, which costs more memory and time. The zero value is ready to use. Once
// the program was found it stays open, so that an upgrade of its file does not concern a running worker.
type Program struct {
	Path   string       // of errand-keeper; empty: beside the worker's program
	Groups *Groups      // of the runs; nil: they have none
	Log    *slog.Logger // of runs that cannot start in a group; may be nil

	probe Probe[opened]
}

// opened is a program, opened for execution only, because it may be a file that this user cannot read.
type opened struct {
	file *os.File
	own  bool // it is the worker's program
}

// Name returns the path of the file errand-keeper; empty if the keepers execute the worker's own program.
func (p *Program) Name(ctx context.Context) (string, *Unavailable) {
	program, unavailable := p.open(ctx)
	if unavailable != nil || program.own {
		return "", unavailable
	}
	return p.path(), nil
}

func (p *Program) path() string {
	if p.Path != "" {
		return p.Path
	}
	worker, err := os.Executable()
	if err != nil {
		return "" // which does not exist
	}
	return filepath.Join(filepath.Dir(worker), Name)
}

// open returns the program. A file that cannot be used is looked at again each time.
func (p *Program) open(ctx context.Context) (opened, *Unavailable) { return p.probe.Find(ctx, p.find) }

// find opens errand-keeper, or the worker's program if there is none.
func (p *Program) find(ctx context.Context) (opened, *Unavailable) {
	f, err := openProgram(p.path())
	if p.Path == "" && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)) {
		return openOwn()
	}
	if err != nil {
		return opened{}, p.unusable(err)
	}
	if err := p.checkVersion(ctx, f); err != nil {
		_ = f.Close()
		return opened{}, p.unusable(err)
	}
	return opened{file: f}, nil
}

// openOwn opens the worker's program.
func openOwn() (opened, *Unavailable) {
	if !supervise.Called() {
		return opened{}, &Unavailable{
			Problem: "this program has not called agent.KeeperMain",
			Remedy: "call agent.KeeperMain at the beginning of main and of TestMain, or install errand-keeper " +
				"beside the program",
		}
	}
	f, err := openProgram(ownProgram)
	if err != nil {
		return opened{}, &Unavailable{Problem: err.Error(), Remedy: "mount /proc"}
	}
	return opened{file: f, own: true}, nil
}

// errSlow says that the program did not answer in time.
var errSlow = errors.New("it did not print its version in time")

// busy are the errors of a machine that has no room for a process now, or replaces the program.
var busy = []error{errSlow, syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE, syscall.ETXTBSY}

// unusable explains an error of the check of errand-keeper.
func (p *Program) unusable(err error) *Unavailable {
	u := &Unavailable{
		Problem: fmt.Sprintf("%s cannot be used: %v", p.path(), err),
		Remedy:  "install errand-keeper from the build of this program",
		Busy:    slices.ContainsFunc(busy, func(b error) bool { return errors.Is(err, b) }),
	}
	if u.Busy {
		u.Problem = fmt.Sprintf("%s could not be checked: %v", p.path(), err)
		u.Remedy = "check the load, memory and process limit of this machine"
	}
	return u
}

// checkVersion checks that a program is errand-keeper and fits this worker.
func (p *Program) checkVersion(ctx context.Context, program *os.File) error {
	cmd := exec.CommandContext(ctx, executable(program), "-version")
	cmd.Args[0], cmd.Dir, cmd.Env = supervise.Name, "/", []string{}
	cmd.ExtraFiles = []*os.File{program} // see spawn
	out, err := Output(cmd)
	if ctx.Err() != nil {
		return errSlow
	}
	if err != nil {
		return fmt.Errorf("ask for its version: %w", err)
	}
	if version := strings.TrimSpace(string(out)); version != supervise.Version() {
		return fmt.Errorf("it has version %.40q, and this program needs %q", version, supervise.Version())
	}
	return nil
}

// CheckOverlays reports why keepers cannot have overlays below dir, or nil: a kernel or a policy may forbid them where
// bubblewrap works otherwise, and some file systems cannot hold them.
func (p *Program) CheckOverlays(ctx context.Context, dir string) error {
	program, unavailable := p.open(ctx)
	if unavailable != nil {
		return unavailable
	}
	dir, err := os.MkdirTemp(dir, "overlay-")
	if err != nil {
		return fmt.Errorf("try an overlay: %w", err)
	}
	defer func() {
		_ = os.Chmod(filepath.Join(dir, "work", "work"), 0o700) //nolint:gosec // made by the kernel without rights
		_ = os.RemoveAll(dir)
	}()
	o := Overlay{
		Lower: filepath.Join(dir, "lower"), Upper: filepath.Join(dir, "upper"), Work: filepath.Join(dir, "work"),
		At: filepath.Join(dir, "at"),
	}
	for _, d := range []string{o.Lower, o.Upper, o.Work, o.At} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return fmt.Errorf("try an overlay: %w", err)
		}
	}
	cmd := exec.CommandContext(ctx, "")
	cmd.Dir, cmd.Env, cmd.Err = "/", []string{}, nil
	cmd.ExtraFiles = []*os.File{program.file}
	if err := overlaid(cmd, 3, []Overlay{o}); err != nil { // the first of ExtraFiles
		return err
	}
	if _, err := Output(cmd); err != nil {
		return fmt.Errorf("try an overlay: %w", err)
	}
	return nil
}
