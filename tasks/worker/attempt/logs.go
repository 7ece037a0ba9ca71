package attempt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/worker/logline"
)

const (
	// How many bytes of a run's logs are stored. The store compresses them.
	keptPeople = 4 << 20
	keptRaw    = 8 << 20

	uploadFor = 10 * time.Second // because a drain has to continue
)

// runLogs are the parts of a task's log files that one run writes. Earlier runs on this machine wrote the parts
// before.
type runLogs []runLog

type runLog struct {
	name, path string
	limit      int
	from, to   int64
}

// begin notes where the run's part begins. Call it before the run, and end after it.
func (l *runLogs) begin(dir, id string) {
	if dir == "" {
		return
	}
	for _, log := range []runLog{{name: tasks.PeopleLog, limit: keptPeople}, {name: tasks.RawLog, limit: keptRaw}} {
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

// size returns the size of a file; 0 if it does not exist.
func size(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// uploadLogs stores the run's part of the logs, so that they can be read when this machine is gone. Errors are only
// logged, because the logs are on this disk.
func (p *Processor) uploadLogs(r *run) {
	ctx, cancel := context.WithTimeout(r.Detached, uploadFor)
	defer cancel()
	for _, log := range r.logs {
		logline.Warn(p.Log, log.save(ctx, r), "keep log", "run", r.Claim.ID())
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
	data, err := excerpt(f, l.from, l.to, l.limit, cutLine(l.name))
	if err != nil {
		return fmt.Errorf("read %s: %w", filepath.Base(l.path), err)
	}
	return r.Claim.SaveLog(ctx, l.name, data)
}

// cutLine returns the line that replaces the missing middle of a log.
func cutLine(name string) string {
	if name == tasks.RawLog {
		return `{"type":"errand_cut","bytes":%d}` + "\n"
	}
	return "[… %d bytes are missing here; the complete log is on the worker's machine …]\n"
}

// excerpt returns the bytes of a file between two offsets. Of more than limit bytes it keeps the first and last lines,
// with a line between them that says how many bytes are missing; cut is the format of that line. A line is cut if it
// fills most of what is kept of the beginning or the end.
func excerpt(file io.ReaderAt, from, to int64, limit int, cut string) ([]byte, error) {
	if to-from <= int64(limit) {
		return readPiece(file, from, to)
	}
	half := int64(limit-1<<10) / 2 // leave room for the line
	head, err := readPiece(file, from, from+half)
	if err != nil {
		return nil, err
	}
	tail, err := readPiece(file, to-half, to)
	if err != nil {
		return nil, err
	}
	if end := bytes.LastIndexByte(head, '\n') + 1; end > len(head)/2 {
		head = head[:end]
	}
	if begin := bytes.IndexByte(tail, '\n') + 1; begin < len(tail)/2 {
		tail = tail[begin:]
	}
	missing := to - from - int64(len(head)+len(tail))
	if !bytes.HasSuffix(head, []byte("\n")) {
		cut = "\n" + cut
	}
	return slices.Concat(head, fmt.Appendf(nil, cut, missing), tail), nil
}

// readPiece returns the bytes of a file between two offsets.
func readPiece(file io.ReaderAt, from, to int64) ([]byte, error) {
	piece := make([]byte, to-from)
	if n, err := file.ReadAt(piece, from); n < len(piece) {
		return nil, err
	}
	return piece, nil
}
