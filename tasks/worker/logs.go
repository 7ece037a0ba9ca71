package worker

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/errand-fleet/errand/tasks"
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
	if name == tasks.RawLog {
		return `{"type":"errand_cut","bytes":%d}` + "\n"
	}
	return "[… %d bytes were cut out here: the machine of the worker has all of it …]\n"
}

// runKey is the key under which the context of a run has its ID.
type runKey struct{}

func withRun(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, runKey{}, id)
}

// LogRuns adds the key run to what is logged on behalf of a run, unless it is there: packages that know nothing of runs, such as workspace,
// need only log with the context they were given.
func LogRuns(next slog.Handler) slog.Handler { return runMarker{Handler: next} }

type runMarker struct {
	slog.Handler
	told bool // the logger has the key
}

func (h runMarker) Handle(ctx context.Context, r slog.Record) error {
	id, ok := ctx.Value(runKey{}).(string)
	told := h.told
	r.Attrs(func(a slog.Attr) bool {
		told = told || a.Key == "run"
		return !told
	})
	if ok && !told {
		r = r.Clone()
		r.AddAttrs(slog.String("run", id))
	}
	return h.Handler.Handle(ctx, r)
}

func (h runMarker) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		h.told = h.told || a.Key == "run"
	}
	h.Handler = h.Handler.WithAttrs(attrs)
	return h
}

func (h runMarker) WithGroup(name string) slog.Handler {
	h.Handler = h.Handler.WithGroup(name)
	return h
}

const (
	packPiece = 64 << 10 // what is packed at once, in whole lines where they are shorter
	packMost  = 64 << 20 // what is read for one half of a log, however well it packs
)

// pack compresses the bytes of a file from one place to another into at most limit bytes of gzip. Of what is too large the beginning and
// the end are kept, with a line between them that says how many bytes are missing; cut is its format.
func pack(file io.ReaderAt, from, to int64, limit int, cut string) ([]byte, error) {
	half := (limit - 1<<10) / 2 // room for the line
	head, n, err := packSome(file, from, to, half)
	from += n
	if err != nil || from == to {
		return head, err
	}
	// How much of the end will fit is only known by trying; it mostly packs as well as the beginning.
	var tail []byte
	start := max(from, to-n)
	for {
		if start > from {
			if start, err = nextLine(file, start, to); err != nil {
				return nil, err
			}
		}
		if tail, n, err = packSome(file, start, to, half); err != nil {
			return nil, err
		}
		if start+n == to {
			break
		}
		start = to - n*9/10
	}
	if start > from {
		var line bytes.Buffer
		z := gzip.NewWriter(&line)
		fmt.Fprintf(z, cut, start-from)
		if err := z.Close(); err != nil {
			return nil, err
		}
		head = append(head, line.Bytes()...) // gzip files in a row are one
	}
	return append(head, tail...), nil
}

// packSome compresses as much as fits into limit bytes, and tells how much that was.
func packSome(file io.ReaderAt, from, to int64, limit int) (data []byte, n int64, err error) {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		return nil, 0, err
	}
	in := bufio.NewReaderSize(io.NewSectionReader(file, from, to-from), packPiece)
	// What does not pack at all takes a little more than itself.
	for room := packPiece + packPiece/64; out.Len()+room <= limit && n < packMost; {
		piece, err := in.Peek(packPiece)
		if err != nil && err != io.EOF {
			return nil, 0, err
		}
		if i := bytes.LastIndexByte(piece, '\n'); i >= 0 && err == nil {
			piece = piece[:i+1]
		}
		if len(piece) == 0 {
			break
		}
		if _, err := z.Write(piece); err != nil {
			return nil, 0, err
		}
		if err := z.Flush(); err != nil { // so that out is all there is
			return nil, 0, err
		}
		n += int64(len(piece))
		_, _ = in.Discard(len(piece)) // it has been peeked
	}
	err = z.Close()
	return out.Bytes(), n, err
}

// nextLine is where the first line after a place begins; at to when there is none, and right there when that would be too far.
func nextLine(file io.ReaderAt, from, to int64) (int64, error) {
	piece := make([]byte, min(packPiece, to-from))
	n, err := file.ReadAt(piece, from)
	if err != nil && err != io.EOF {
		return 0, err
	}
	if i := bytes.IndexByte(piece[:n], '\n'); i >= 0 {
		return from + int64(i) + 1, nil
	}
	return from, nil
}
