package keeper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/errand-fleet/errand/internal/cache"
)

// probeTimeout bounds an attempt to find out whether something works here. It takes milliseconds, and seconds where
// many programs want the processors.
const probeTimeout = 2 * time.Minute

// Unavailable says why no run can start.
type Unavailable struct {
	Problem, Remedy string

	Busy bool // the machine is too busy to find out: it may be possible soon
}

func (u *Unavailable) Error() string { return u.Problem + ": " + u.Remedy }

// Probe finds out whether something works here. Once it was seen to work, that is not checked again; if it does not
// work, it is tried again each time, so that a remedy works at once. The zero value is ready to use.
type Probe[T any] struct {
	Limit time.Duration // of an attempt; 0: 2 minutes

	prepare sync.Once
	answers cache.Cache[T]
}

// Find returns what try has found. Those who ask while an attempt is under way share it. Each of them stops waiting
// when its ctx ends: one run that is stopped does not make anything look broken for the others.
func (p *Probe[T]) Find(ctx context.Context, try func(context.Context) (T, *Unavailable)) (T, *Unavailable) {
	p.prepare.Do(func() { p.answers.Limit, p.answers.Now = cmp.Or(p.Limit, probeTimeout), time.Now })
	found, err := p.answers.Get(ctx, "", func(ctx context.Context) (T, error) {
		found, unavailable := try(ctx)
		if unavailable != nil {
			return found, unavailable
		}
		return found, nil
	})
	if unavailable, ok := errors.AsType[*Unavailable](err); ok {
		return found, unavailable
	}
	if err != nil {
		return found, &Unavailable{Problem: err.Error(), Remedy: "try it again", Busy: true}
	}
	return found, nil
}

// Output runs a command that tries or does something for this process, and ends with it. It returns what the command
// writes to its standard output. An error has the first of what it writes to standard error, in a line; more is in the
// *exec.ExitError.
func Output(cmd *exec.Cmd) ([]byte, error) {
	runtime.LockOSThread() // the kernel would end the command with the thread that started it
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr, cmd.WaitDelay = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}, time.Second
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && len(exit.Stderr) > 0 {
		err = fmt.Errorf("%w: %.300s", err, strings.Join(strings.Fields(string(exit.Stderr)), " "))
	}
	return out, err
}
