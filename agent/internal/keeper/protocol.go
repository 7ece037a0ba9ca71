package keeper

import (
	"encoding/json"
	"os"
	"time"
)

// The keeper is a tiny process between the worker and the CLI, one per run. The CLI starts every tool's shell in a session of
// its own, so no process group contains a run; and a worker can be killed at any moment. The keeper answers both: everything the
// CLI starts is re-parented to it and to nobody else, and when its worker's end of the control pipe closes, for whatever reason,
// it ends the run by itself. Measured in docs/concurrency.md.

// keeperName is a keeper's last argument, which is how a re-executed binary knows that it is one, and the only one (what `ps` shows)
// but in a sandbox: bubblewrap gives its program no other argv[0] than its path.
const keeperName = "errand-keeper"

// File descriptors of a keeper, beside the CLI's own stdin, stdout and stderr.
const (
	controlFD = 3 // reads startOrder, then one command per line; its end means that the worker is gone
	statusFD  = 4 // writes one startStatus and one exitStatus, as JSON lines
)

// startOrder is the first line of the control pipe. It carries what must not be seen in /proc: arguments and environment are the
// CLI's own, and the credential is handed on through a pipe.
type startOrder struct {
	Path         string   `json:"path"`
	Args         []string `json:"args"` // argv[0] included
	Env          []string `json:"env"`
	Dir          string   `json:"dir"`
	Alone        bool     `json:"alone,omitempty"`         // make the gateway's socket and hand it out, before the CLI starts
	Secret       string   `json:"secret,omitempty"`        // readable for the CLI at descriptor 3; empty for none
	Orphan       duration `json:"orphan"`                  // TERM to KILL when the worker died
	Silent       duration `json:"silent,omitempty"`        // without a word of the worker's the run is ended after it; 0: never
	MaxProcesses int      `json:"max_processes,omitempty"` // more processes and threads than these end the run; 0: any number may be
	Mark         uint64   `json:"mark,omitempty"`          // of what is born in the run: see birthMark; 0: none
	Remove       string   `json:"remove,omitempty"`        // the run's own directory, removed by the keeper when the worker died

	// Sealed is for the worker's side: stdin and stdout are a protocol, and no other process may open them. A script's stay pipes, for
	// scripts write to /dev/stdout by its name.
	Sealed bool `json:"-"`
}

// command is what follows the start order: TERM the CLI now, and KILL it after Term. A later one can only hurry it. The zero command is a
// beat: it says that the worker is alive.
type command struct {
	Term duration `json:"term,omitempty"`
}

type startStatus struct {
	Error string `json:"error,omitempty"`
	Errno int    `json:"errno,omitempty"`
}

// exitStatus is the keeper's last word: after it, nothing of the run is alive but Stuck processes.
type exitStatus struct {
	Code      int      `json:"code"`             // -1 when a signal ended the CLI
	Signal    string   `json:"signal,omitempty"` // its name
	Stopped   bool     `json:"stopped"`          // the CLI was alive when the keeper told it to end
	Silence   duration `json:"silence"`          // for which the worker had said nothing when that ended the run; 0: it did not
	Processes int      `json:"processes"`        // processes and threads there were when their number ended the run; 0: it did not
	OOM       int64    `json:"oom"`              // processes of the keeper's memory cgroup that ran out of memory meanwhile
	Swept     int      `json:"swept"`            // processes that had outlived the CLI and were killed
	Stuck     int      `json:"stuck"`            // processes that would not die within sweepLimit
	CPU       duration `json:"cpu"`
	MaxRSS    int64    `json:"max_rss"`

	keeperDied bool // it said nothing; set by the worker
}

// duration is a time.Duration in JSON, as nanoseconds.
type duration = time.Duration

// sweepLimit bounds how long a keeper waits for processes that do not die of SIGKILL: those in uninterruptible sleep.
const sweepLimit = 10 * time.Second

// keeperLimit bounds how long the worker waits for a keeper that should have ended its run: the keeper itself gives up after a sweepLimit
// for the CLI and one for the rest.
const keeperLimit = 2*sweepLimit + 5*time.Second

// orphanGrace is how long the CLI has between TERM and KILL when its worker died. The CLI itself needs up to 3.3 s; all must be
// over within 8 s, before anybody else may take the thread (DESIGN: takeover after 16 s at the earliest).
const orphanGrace = 5 * time.Second

// A worker may be alive and do nothing: it is stopped, thrashes, or its machine was suspended. Its claim then runs out like a dead one's, so
// it has to say every second that it is there, and the run of one that does not is over silentLimit and silentGrace after its last word.
// Others may take the thread 16 s after the claim was renewed, which may have been 5 s before that word (docs/concurrency.md).
const (
	silentLimit = 6 * time.Second
	silentGrace = 3 * time.Second
	beats       = 6 // in a silentLimit
)

// lookEvery is how often a keeper looks at its worker's silence and at the number of its processes.
const lookEvery = 100 * time.Millisecond

// KeeperMain must be the first call of main and of TestMain. In a process that was started as a keeper it keeps its run and
// exits; in any other it returns at once.
func KeeperMain() {
	if n := len(os.Args); n == 0 || n > 2 || os.Args[n-1] != keeperName {
		return
	}
	keepFiles()
	os.Exit(keep(os.NewFile(controlFD, "control"), os.NewFile(statusFD, "status")))
}

// say writes one JSON line of status. The worker may be gone: then nobody needs to know.
func say(status *os.File, v any) {
	line, err := json.Marshal(v)
	if err != nil {
		panic("marshal keeper status: " + err.Error()) // only our own two plain structs come here
	}
	_, _ = status.Write(append(line, '\n'))
}
