package attempt

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/worker/logline"
)

const (
	// How many packed bytes of a run's logs are stored; together this is the store's limit per run.
	keptPeople = 2 << 20
	keptRaw    = 3 << 20

	uploadFor = 10 * time.Second // because a drain has to continue
	packPiece = 64 << 10         // bytes that are packed at once, in whole lines if possible
	packMost  = 64 << 20         // bytes that are read at most for one half of a log
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

// uploadLogs stores the run's part of the logs, as gzip, so that they can be read when this machine is gone. Errors are
// only logged, because the logs are on this disk.
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
	data, err := pack(f, l.from, l.to, l.limit, cutLine(l.name))
	if err != nil {
		return fmt.Errorf("pack %s: %w", filepath.Base(l.path), err)
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

// pack compresses the bytes of a file between two offsets into at most limit bytes of gzip. If that is too little, it
// keeps the beginning and the end, with a line between them that says how many bytes are missing; cut is the format
// of that line. Each piece is a gzip file, because concatenated gzip files are one, too.
func pack(file io.ReaderAt, from, to int64, limit int, cut string) ([]byte, error) {
	half := (limit - 1<<10) / 2 // leave room for the line
	var head, tail []byte
	for most := from + packMost; from < min(to, most); {
		piece, err := readPiece(file, from, min(to, from+packPiece))
		if err != nil {
			return nil, err
		}
		if i := bytes.LastIndexByte(piece, '\n'); i >= 0 && from+int64(len(piece)) < to {
			piece = piece[:i+1]
		}
		packed := gzipped(piece)
		if len(head)+len(packed) > half {
			break
		}
		head = append(head, packed...)
		from += int64(len(piece))
	}
	for least := to - packMost; to > max(from, least); {
		start := max(from, to-packPiece)
		piece, err := readPiece(file, start, to)
		if err != nil {
			return nil, err
		}
		if i := bytes.IndexByte(piece, '\n'); i >= 0 && i < len(piece)-1 && start > from {
			piece = piece[i+1:]
		}
		packed := gzipped(piece)
		if len(tail)+len(packed) > half {
			break
		}
		tail = append(packed, tail...)
		to -= int64(len(piece))
	}
	if from < to {
		head = append(head, gzipped(fmt.Appendf(nil, cut, to-from))...)
	}
	return append(head, tail...), nil
}

// readPiece returns the bytes of a file between two offsets.
func readPiece(file io.ReaderAt, from, to int64) ([]byte, error) {
	piece := make([]byte, to-from)
	if n, err := file.ReadAt(piece, from); n < len(piece) {
		return nil, err
	}
	return piece, nil
}

// gzipped compresses data into a gzip file.
func gzipped(data []byte) []byte {
	var out bytes.Buffer
	z, _ := gzip.NewWriterLevel(&out, gzip.BestSpeed) // the level is valid, and a buffer takes everything
	_, _ = z.Write(data)
	_ = z.Close()
	return out.Bytes()
}
