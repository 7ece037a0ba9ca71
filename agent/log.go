package agent

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/errand-fleet/errand/agent/internal/redact"
)

// runLog writes the two logs of a run: <id>.log for people and <id>.ndjson, the CLI's output as it came, both redacted. A run that is
// repeated appends. A full disk never stops a run: the first error is kept and reported, later writes are tried all the same.
//
// Raw and Flush are the stdout goroutine's; the other methods may be called from any.
type runLog struct {
	redact *Redactor
	raw    logFile
	screen *redact.Stream // what raw passes
	soon   *time.Timer    // flushes people

	mu     sync.Mutex
	people logFile
	note   []byte // memory of the latest
	due    bool   // soon is running
	err    error
}

const (
	flushAfter = 250 * time.Millisecond // a note is in the file by then
	keptNote   = 64 << 10               // the memory that is kept for notes
)

// openLog creates the directory and both files, readable for their owner only.
func openLog(dir, id string, header []string, redact *Redactor, now time.Time) (*runLog, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create log directory: %w", err)
	}
	people, err := openLogFile(filepath.Join(dir, id+".log"), 8<<10)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	raw, err := openLogFile(filepath.Join(dir, id+".ndjson"), 32<<10)
	if err != nil {
		_ = people.f.Close()
		return nil, fmt.Errorf("open raw log: %w", err)
	}
	l := makeLog(people, raw, redact)
	l.write("# errand " + id)
	l.write("# started " + now.UTC().Format(time.RFC3339))
	for _, h := range header {
		l.write("# " + strings.ReplaceAll(h, "\n", " "))
	}
	return l, nil
}

// noLog is for what is no run, and leaves nothing behind.
func noLog() (*runLog, error) {
	none, err := openLogFile(os.DevNull, 0)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	also, err := openLogFile(os.DevNull, 0)
	if err != nil {
		_ = none.f.Close()
		return nil, fmt.Errorf("open log: %w", err)
	}
	return makeLog(none, also, nil), nil
}

func makeLog(people, raw logFile, redactor *Redactor) *runLog {
	l := &runLog{redact: redactor, raw: raw, screen: redactor.Stream(), people: people}
	l.soon = time.AfterFunc(flushAfter, l.flushNotes)
	return l
}

// Raw appends output of the CLI.
func (l *runLog) Raw(text []byte) { l.failed("write raw log", l.raw.Write(l.screen.Write(text))) }

// Flush makes what was written so far visible to readers of the files.
func (l *runLog) Flush() {
	l.failed("write raw log", l.raw.Flush())
	l.flushNotes()
}

func (l *runLog) flushNotes() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.due = false
	l.fail("write log", l.people.Flush())
}

// Note appends a line for people, with the time of day. Continuation lines are indented, so that only a time starts a line. It is in the
// file after the next Flush, or soon.
func (l *runLog) Note(t time.Time, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.note = t.UTC().AppendFormat(l.note[:0], "15:04:05.000 ")
	l.note = fmt.Appendf(l.note, format, args...)
	l.put(bytes.TrimRight(l.note, "\n"))
	if cap(l.note) > keptNote {
		l.note = nil
	}
}

// write appends a line for people, without the time.
func (l *runLog) write(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put([]byte(line))
}

// put needs mu.
func (l *runLog) put(text []byte) {
	text = l.redact.Bytes(redact.Plain(text)) // in this order: a sequence in the middle of a secret would hide it from the redactor
	if bytes.IndexByte(text, '\n') >= 0 {
		text = bytes.ReplaceAll(text, []byte("\n"), []byte("\n             "))
	}
	l.fail("write log", l.people.Line(text))
	if !l.due {
		l.due = true
		l.soon.Reset(flushAfter)
	}
}

func (l *runLog) failed(what string, err error) {
	if err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.fail(what, err)
	}
}

// fail keeps the first error. It needs mu.
func (l *runLog) fail(what string, err error) {
	if err != nil && l.err == nil {
		l.err = fmt.Errorf("%s: %w", what, err)
	}
}

// Close ends both logs and returns the first error there was.
func (l *runLog) Close() error {
	l.soon.Stop()
	l.failed("write raw log", l.raw.Write(l.screen.Flush()))
	l.failed("write raw log", l.raw.Close())
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fail("write log", l.people.Close())
	return l.err
}

// logFile collects what is written to a file.
type logFile struct {
	f *os.File
	w *bufio.Writer
}

func openLogFile(path string, size int) (logFile, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return logFile{f: f, w: bufio.NewWriterSize(f, size)}, err
}

func (f *logFile) Write(b []byte) error {
	_, err := f.w.Write(b)
	return f.lost(err)
}

// Line writes b and a newline.
func (f *logFile) Line(b []byte) error {
	_, err := f.w.Write(b)
	if err == nil {
		err = f.w.WriteByte('\n')
	}
	return f.lost(err)
}

func (f *logFile) Flush() error { return f.lost(f.w.Flush()) }

func (f *logFile) Close() error { return errors.Join(f.Flush(), f.f.Sync(), f.f.Close()) }

// lost forgets what could not be written: bufio would keep its first error for ever, and the disk may have room again.
func (f *logFile) lost(err error) error {
	if err != nil {
		f.w.Reset(f.f)
	}
	return err
}
