package keeper

import (
	"context"
	"runtime"
	"runtime/pprof"
	"sync"
	"time"
)

// pulse sends the heartbeats of this process to its keepers. It is global because it is the process that lives.
var pulse heartbeats

// heartbeats are sent by one thread, which does nothing else and has a higher priority if the process may give it one:
// on a machine with too much work, the other threads get their turn late.
type heartbeats struct {
	mu    sync.Mutex
	every map[*Process]time.Duration // the keepers that hear them
	runs  bool                       // the thread
}

// add makes a keeper hear a heartbeat at least that often, until its process is done.
func (h *heartbeats) add(p *Process, every time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.every == nil {
		h.every = map[*Process]time.Duration{}
	}
	h.every[p] = every
	if !h.runs {
		h.runs = true
		go h.run()
	}
}

// run sends heartbeats while there are keepers.
func (h *heartbeats) run() {
	runtime.LockOSThread() // and not unlocked: the thread ends with its priority
	raisePriority()
	pprof.SetGoroutineLabels(context.Background()) // it does not belong to the run that started it
	for {
		wait, ok := h.send()
		if !ok {
			return
		}
		sleep(wait)
	}
}

// send sends one to each keeper, and returns when the next ones are due. It returns false once there is no keeper.
func (h *heartbeats) send() (wait time.Duration, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
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
	h.runs = len(h.every) > 0
	return wait, h.runs
}

// heartbeat is the zero supervise.Command. It is so short that a pipe takes all of it or nothing.
var heartbeat = []byte("{}\n")

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
		writeOnce(int(fd), heartbeat)
		return true
	})
}
