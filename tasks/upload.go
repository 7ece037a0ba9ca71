package tasks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// The names of a run's two logs: of their files in the log directory after "<id>.", and in the store.
const (
	PeopleLog = "log"    // for people
	RawLog    = "ndjson" // the CLI's own lines
)

// What of a run's logs is kept in the store, in packed bytes: together as much as the store takes of a run.
const (
	keptPeople = 2 << 20
	keptRaw    = 3 << 20
)

// uploadFor bounds an upload; a drain has to go on.
const uploadFor = 10 * time.Second

// runLogs are the parts of a task's logs that one run of it writes. Earlier runs on this machine are before them in the same files.
type runLogs []runLog

type runLog struct {
	name, path string
	limit      int
	from, to   int64
}

// begin is called before the run starts, end when it is over.
func (l *runLogs) begin(dir, id string) {
	if dir == "" {
		return
	}
	for _, log := range []runLog{{name: PeopleLog, limit: keptPeople}, {name: RawLog, limit: keptRaw}} {
		log.path = filepath.Join(dir, id+"."+log.name)
		log.from = size(log.path)
		*l = append(*l, log)
	}
}

func (l runLogs) end() {
	for i := range l {
		l[i].to = size(l[i].path)
	}
}

// size of a file; 0 when there is none.
func size(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// upload keeps the run's part of the logs where it can be read when this machine is gone, as gzip. That it cannot is no failure: the logs
// are on this disk.
func (w *Worker) upload(r *run) {
	ctx, cancel := context.WithTimeout(r.detached, uploadFor)
	defer cancel()
	for _, log := range r.logs {
		if err := log.save(ctx, r); err != nil {
			w.log.Warn("keep log", "run", r.claim.ID(), "err", err)
		}
	}
}

func (l runLog) save(ctx context.Context, r *run) error {
	if l.to <= l.from {
		return nil // nothing was started, or the disk is full
	}
	f, err := os.Open(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	defer f.Close()
	data, err := pack(f, l.from, l.to, l.limit, cutLine(l.name))
	if err != nil {
		return fmt.Errorf("pack %s: %w", filepath.Base(l.path), err)
	}
	return r.claim.SaveLog(ctx, l.name, data)
}

// cutLine is what stands in a log for the middle that was cut out of it.
func cutLine(name string) string {
	if name == RawLog {
		return `{"type":"errand_cut","bytes":%d}` + "\n"
	}
	return "[… %d bytes were cut out here: the machine of the worker has all of it …]\n"
}
