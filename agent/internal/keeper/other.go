//go:build !linux

package keeper

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// Agents run on Linux only. Elsewhere, programs that do not run them are compiled with this package.

var liveKeepers sync.Map

// Groups do not exist here.
type Groups struct{}

type group struct{}

// FindGroups returns an error here.
func FindGroups() (*Groups, error) { return nil, errors.ErrUnsupported }

func (g *Groups) open(Order) (*group, error) { return nil, nil }
func (g *group) join(*syscall.SysProcAttr)   {}
func (g *group) outOfMemory() int64          { return 0 }
func (g *group) remove()                     {}

func ownStat() *os.File { return nil }
func raisePriority()    {}

func sleep(time.Duration) {}

func writeOnce(int, []byte) {}

const ownProgram = ""

func openProgram(string) (*os.File, error) { return nil, errors.ErrUnsupported }
func executable(*os.File) string           { return "" }

// Readable lists nothing here.
func (p *Program) Readable() (paths []string) { return nil }

func sealedPipe() (r, w *os.File, err error)           { return nil, nil, errors.ErrUnsupported }
func socketPair() (worker, keeper *os.File, err error) { return nil, nil, errors.ErrUnsupported }
func receiveListener(*os.File) (net.Listener, error)   { return nil, errors.ErrUnsupported }
func overlaid(*exec.Cmd, int, []Overlay) error         { return errors.ErrUnsupported }
func children(int) []int                               { return nil }
func suspended(int) bool                               { return false }
func lockLimit() uint64                                { return 0 }
func reapZombies()                                     {}

// Held finds nothing here.
func (p *Process) Held() (unlinked int64, waiting int) { return 0, 0 }

// BecomeSubreaper does nothing here.
func BecomeSubreaper() error { return nil }

// SweepRun finds nothing here.
func SweepRun(string) int { return 0 }

// SweepDeadWorkers finds nothing here.
func SweepDeadWorkers(context.Context) (int, error) { return 0, nil }

// WorkerMark is empty here, so that nothing is marked.
func WorkerMark() string { return "" }

// MakePrivate returns a notice that this system does not protect a process from others of its user.
func MakePrivate() (notice string, err error) {
	return "this system cannot hide this process from others of its user", nil
}

// Private reports false here.
func Private() (ok bool, remedy string) { return false, "" }

// WithEnvironment lists nothing here.
func WithEnvironment([]string) []string { return nil }
