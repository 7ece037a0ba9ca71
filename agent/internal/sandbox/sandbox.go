package sandbox

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/errand-fleet/errand/agent/internal/redact"
)

// Sandbox says how far the processes of a run are kept from the rest of the machine.
type Sandbox string

// The sandboxes. The zero value is SandboxNone.
const (
	SandboxNone  Sandbox = "none"  // not at all: they may do whatever the worker's user may
	SandboxBwrap Sandbox = "bwrap" // by bubblewrap; where it does not work, nothing runs
)

// proofLimit bounds the attempt to start something in a sandbox. It takes 10 ms.
const proofLimit = 10 * time.Second

// sandbox is what a Runner has found out about bubblewrap. That it works is believed for good; that it does not is asked again by
// each run, so that a remedy works at once.
type sandbox struct {
	mu    sync.Mutex
	bwrap string // its path, once it was seen to work
	flat  bool   // it keeps user namespaces from being made inside, as those since 0.8 do; the filter does so, too
	alone bool   // it was seen to give a run a network of its own

	toldNet bool // of untrusted runs with the machine's network, in the log
}

// unboxed is why runs are not put into the sandbox that was asked for.
type unboxed struct{ problem, remedy string }

func (u *unboxed) Error() string { return u.problem + ": " + u.remedy }

// refusal is the same to a run that must not start without one.
func (u *unboxed) refusal() *Error {
	e := NewError(ClassConfig, u.Error())
	e.User, e.Remedy = "The worker has no sandbox to run the agent in. An operator must look at its health.", u.remedy
	return e
}

// bubblewrap returns the path of a bubblewrap that works here; empty when runs have no sandbox. why is nil when none was asked for.
func (r *Runner) bubblewrap(ctx context.Context) (path string, why *unboxed) {
	if r.cfg.Sandbox == SandboxNone {
		return "", nil
	}
	s := r.sandbox
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bwrap != "" {
		return s.bwrap, nil
	}
	path, why = r.prove(ctx)
	if why == nil {
		s.bwrap = path
		return path, nil
	}
	return "", why
}

// prove finds bubblewrap and starts something harmless as a run would be started. Finding it is not enough: a container, or a
// kernel's policy, may forbid the namespaces it is made of.
func (r *Runner) prove(ctx context.Context) (string, *unboxed) {
	bwrap := onPath("bwrap", r.getenv("PATH"))
	if bwrap == "" {
		return "", &unboxed{"bwrap is not on PATH", "install bubblewrap" + instead}
	}
	bwrap, err := filepath.EvalSymlinks(bwrap) // the link may be hidden inside
	if err != nil {
		return "", &unboxed{"find bubblewrap: " + err.Error(), "install it" + instead}
	}
	if r.try(ctx, bwrap, "--disable-userns") == nil {
		r.sandbox.flat = true
		return bwrap, nil
	}
	if why := r.try(ctx, bwrap); why != nil {
		return "", why
	}
	return bwrap, nil
}

// instead is what an operator may do who cannot have a sandbox.
const instead = ", or set ERRAND_SANDBOX=none"

// try starts something harmless in a sandbox, with further options of bubblewrap's.
func (r *Runner) try(ctx context.Context, bwrap string, options ...string) *unboxed {
	dirs, err := makeDirs(r.cfg.TempDir)
	if err != nil {
		return &unboxed{err.Error(), "make the temporary directory writable"}
	}
	defer func() { _ = dirs.remove() }()
	args, err := r.bwrapArgs(bwrap, Spec{Dir: dirs.Home}, bwrap, dirs)
	if err != nil {
		return &unboxed{err.Error(), "mend the directories it names" + instead}
	}
	filter, err := seccompFile()
	if err != nil {
		return &unboxed{err.Error(), "use another machine" + instead}
	}
	defer filter.Close()
	options = append(options, "--seccomp", "3") // the first of ExtraFiles
	// A run that is stopped meanwhile must not make the sandbox look broken.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), proofLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, bwrap, append(slices.Concat(options, args[1:]), bwrap, "--version")...)
	cmd.Env = []string{} // ours has secrets, and bubblewrap's own process can be read by the tools of other runs
	cmd.WaitDelay, cmd.ExtraFiles = time.Second, []*os.File{filter}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		words := cmp.Or(strings.Join(strings.Fields(out.String()), " "), err.Error())
		return &unboxed{
			fmt.Sprintf("%s does not work here (%s)", bwrap, redact.Clip(words, 300)),
			"allow user namespaces (docs/security.md)" + instead,
		}
	}
	return nil
}
