package keeper

import (
	"context"
	"fmt"
	"runtime"
	"runtime/pprof"
	"sync"
	"time"

	"github.com/errand-fleet/errand/agent/internal/keeper/supervise"
)

// pulse sends the heartbeats of this process to its keepers. It is global because it is the process that lives.
var pulse heartbeats

// heartbeats are sent by one thread, which does nothing else and has a higher priority if the process may give it one:
// on a machine with too much work, the other threads get their turn late. The thread stays when there is no keeper:
// its end would kill what it once forked with Pdeathsig, in whatever part of the program.
type heartbeats struct {
	start sync.Once

	mu    sync.Mutex
	every map[*Process]time.Duration // the keepers that hear them
	some  *sync.Cond                 // every is not empty
}

// add makes a keeper hear a heartbeat at least that often, until its process is done.
func (h *heartbeats) add(p *Process, every time.Duration) {
	h.start.Do(func() {
		h.every, h.some = map[*Process]time.Duration{}, sync.NewCond(&h.mu)
		go h.run()
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.every[p] = every
	h.some.Signal()
}

// run sends heartbeats for ever.
func (h *heartbeats) run() {
	runtime.LockOSThread() // and not unlocked: the thread has another priority than others
	raisePriority()
	pprof.SetGoroutineLabels(context.Background()) // it does not belong to the run that started it
	for {
		sleep(h.send())
	}
}

// send waits until there is a keeper, sends each a heartbeat, and returns when the next ones are due.
func (h *heartbeats) send() (wait time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.every) == 0 {
		h.some.Wait()
	}
	wait = time.Second
	for p, every := range h.every {
		select {
		case <-p.done:
			delete(h.every, p)
			continue
		default:
		}
		p.beat()
		wait = min(wait, every)
	}
	return wait
}

// heartbeat returns a supervise.Command without grace. It is so short that a pipe takes all of it or nothing.
func heartbeat() []byte { return fmt.Appendf(nil, "{\"sent\":%d}\n", supervise.SinceBoot()) }

// beat sends a heartbeat, unless a command is being sent, which says the same. It waits for nothing: a keeper that does
// not read has enough to read.
func (p *Process) beat() {
	if !p.controlMu.TryLock() {
		return
	}
	defer p.controlMu.Unlock()
	raw, err := p.control.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Write(func(fd uintptr) (done bool) {
		writeOnce(int(fd), heartbeat())
		return true
	})
}
