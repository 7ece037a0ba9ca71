// Package supervise is the keeper's side of package keeper: what runs in the process between worker and CLI. The
// program errand-keeper contains nothing else, so the package imports little: each run has a process of it.
//
// [Main] is the keeper. Package keeper, the worker's side, uses the other exported names. This file has the protocol
// between the two.
package supervise

import (
	"bufio"
	"embed"
	"encoding/json"
	"hash/fnv"
	"io"
	"os"
	"strconv"
	"syscall"
	"time"
)

// Name is a keeper's last argument, by which a re-executed binary knows that it is one. It is the only argument, the
// one that `ps` shows, except in a sandbox: bubblewrap always passes the path of its program as argv[0].
const Name = "errand-keeper"

// OverlayName is the program's first argument when it mounts overlays. The next one is a JSON list of them, and the
// rest the command that it executes then: bubblewrap's. Without a command it only tries.
const OverlayName = "errand-overlays"

// Overlay shows what is in Lower, with the changes in Upper, at At. All are directories; Upper and Work are on one file
// system, and nothing else uses them meanwhile.
type Overlay struct{ Lower, Upper, Work, At string }

// File descriptors of a keeper, after the CLI's stdin, stdout and stderr.
const (
	ControlFD = 3 // reads the Order, then one Command per line; its end means that the worker is gone
	StatusFD  = 4 // writes one StartStatus and one Exit, as JSON lines
	ProgramFD = 5 // the keeper's program, which may not be visible in a sandbox
	WorkerFD  = 6 // reads /proc/<pid>/stat of the worker, which is not visible in a sandbox

	// In a sandbox only.
	TempFD   = 7 // the parent of Order.RunDir, outside the sandbox
	FilterFD = 8 // the seccomp filter; bubblewrap reads and closes it
	ListenFD = 9 // with Order.Ports: passes the listening sockets to the worker
)

// LockFile is the file in Order.RunDir that is locked while the worker lives. By it others find the directories of dead
// workers, so it is removed last.
const LockFile = "errand.lock"

// Order is the first line of the control pipe. It carries what must not be seen in /proc: arguments and environment are
// those of the CLI, and the credential goes through a pipe.
type Order struct {
	Path          string        `json:"path"`
	Args          []string      `json:"args"` // with argv[0]
	Env           []string      `json:"env"`
	Dir           string        `json:"dir"`
	Ports         []int         `json:"ports,omitempty"`          // in a sandbox: loopback ports that the worker serves
	Secret        string        `json:"secret,omitempty"`         // readable for the CLI at descriptor 3; empty: none
	OrphanGrace   time.Duration `json:"orphan_grace"`             // from TERM to KILL when the worker died
	WorkerTimeout time.Duration `json:"worker_timeout,omitempty"` // silence of the worker that ends the run; 0: none
	MaxProcesses  int           `json:"max_processes,omitempty"`  // maximum processes and threads; 0: no limit
	MaxMemory     int64         `json:"max_memory,omitempty"`     // maximum bytes of all processes; 0: no limit
	RunDir        string        `json:"run_dir,omitempty"`        // removed by the keeper if the worker died
	LockLimit     uint64        `json:"lock_limit,omitempty"`     // mark of the run's processes; see package keeper

	// Sealed makes stdin and stdout a protocol that no other process can open. Scripts get pipes, because they write to
	// /dev/stdout by name.
	Sealed bool `json:"-"`
}

// Command is a further line of the control pipe: TERM the CLI now, and KILL it after Grace. A later one can only
// shorten the grace. One without Grace is a heartbeat: it says that the worker was alive when it was sent.
type Command struct {
	Sent  time.Duration `json:"sent"` // by SinceBoot
	Grace time.Duration `json:"grace,omitempty"`
}

// StartStatus is the keeper's first line. An empty Error means that the CLI has started.
type StartStatus struct {
	Error string        `json:"error,omitempty"`
	Errno syscall.Errno `json:"errno,omitempty"`
}

// Exit is the keeper's last line. After it, no process of the run is alive except the Stuck ones.
type Exit struct {
	Code      int           `json:"code"`             // -1 if a signal ended the CLI
	Signal    string        `json:"signal,omitempty"` // name of that signal
	Stopped   bool          `json:"stopped"`          // the CLI was alive when the keeper stopped it
	Silence   time.Duration `json:"silence"`          // silence of the worker that ended the run, or 0
	Processes int           `json:"processes"`        // processes and threads, if they ended the run, or 0
	Memory    int64         `json:"memory"`           // bytes of all processes, if they ended the run, or 0
	Peak      int64         `json:"peak"`             // the most that the processes had together, as far as it was seen
	OOM       int64         `json:"oom"`              // processes in the keeper's memory cgroup without memory
	Swept     int           `json:"swept"`            // processes that had outlived the CLI and were killed
	Stuck     int           `json:"stuck"`            // processes that did not die within KillTimeout
	CPU       time.Duration `json:"cpu"`
	MaxRSS    int64         `json:"max_rss"`

	KeeperDied bool `json:"-"` // the keeper wrote no Exit; set by the worker
}

// KillTimeout bounds how long a keeper waits for processes that do not die of SIGKILL: those in uninterruptible sleep.
const KillTimeout = 10 * time.Second

// EndTimeout bounds how long a worker waits for a keeper that has to end its run: the keeper gives up after one
// KillTimeout for the CLI and one for the rest.
const EndTimeout = 2*KillTimeout + 5*time.Second

// OrphanGrace is how long the CLI has between TERM and KILL when its worker died. The CLI needs up to 3.3 s. Everything
// must be over within 8 s, before another worker can take the thread over (16 s at the earliest).
const OrphanGrace = 5 * time.Second

// A worker may be alive and do nothing: it is stopped, or its machine was suspended. Its claim then expires as that of
// a dead worker does. So it sends a heartbeat every second, and the run of a worker that does not, and does nothing
// else either, is over WorkerTimeout and SilenceGrace after its last sign of life. Another worker can take the thread
// 16 s after the claim was renewed, which may have been 5 s before that heartbeat (docs/concurrency.md).
const (
	WorkerTimeout      = 6 * time.Second
	SilenceGrace       = 3 * time.Second
	HeartbeatsPerLimit = 6
)

// WriteLine writes one JSON line. It errs only if the other side is gone.
func WriteLine(f *os.File, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		panic("marshal a line of the keeper's protocol: " + err.Error()) // the types above can be marshalled
	}
	_, err = f.Write(append(line, '\n'))
	return err
}

// ReadLine reads one JSON line.
func ReadLine(r *bufio.Reader, v any) error {
	line, err := r.ReadBytes('\n')
	if err == io.EOF && len(line) == 0 {
		return io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(line, v)
}

//go:embed *.go
var source embed.FS

// Version identifies this package by a checksum of its source: worker and keeper work together only if they were built
// from the same.
func Version() string {
	sum := fnv.New64a()
	files, _ := source.ReadDir(".")
	for _, f := range files {
		text, _ := source.ReadFile(f.Name())
		_, _ = sum.Write(text)
	}
	return strconv.FormatUint(sum.Sum64(), 16)
}
