package agent

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// runLog writes the two logs of a run: <id>.log for people and <id>.ndjson, the CLI's output as it came. A run that is repeated
// appends. A full disk never stops a run: the first error is kept and reported, later writes are tried all the same.
//
// Raw and Flush are the stdout goroutine's; the other methods may be called from any.
type runLog struct {
	raw *bufio.Writer
	rf  *os.File

	redact *Redactor

	mu    sync.Mutex
	human *os.File
	err   error
}

// openLog creates the directory and both files, readable for their owner only.
func openLog(dir, id string, header []string, redact *Redactor, now time.Time) (*runLog, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create log directory: %w", err)
	}
	open := func(name string) (*os.File, error) {
		return os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	}
	human, err := open(id + ".log")
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	rf, err := open(id + ".ndjson")
	if err != nil {
		_ = human.Close()
		return nil, fmt.Errorf("open raw log: %w", err)
	}
	l := &runLog{redact: redact, human: human, rf: rf, raw: bufio.NewWriterSize(rf, 64<<10)}
	l.write(fmt.Sprintf("# errand %s\n# started %s\n", id, now.UTC().Format(time.RFC3339)))
	for _, h := range header {
		l.write("# " + strings.ReplaceAll(h, "\n", " ") + "\n")
	}
	return l, nil
}

// Raw appends one piece of output; with end, its newline too.
func (l *runLog) Raw(piece []byte, end bool) {
	_, err := l.raw.Write(piece)
	if err == nil && end {
		err = l.raw.WriteByte('\n')
	}
	l.failed(err)
}

// Flush makes what was written so far visible to readers of the file.
func (l *runLog) Flush() {
	err := l.raw.Flush()
	l.failed(err)
	if err != nil {
		l.raw.Reset(l.rf) // bufio keeps its first error for ever; the disk may have room again
	}
}

// Note appends a line for people, with the time of day. Continuation lines are indented, so that only a time starts a line.
func (l *runLog) Note(t time.Time, format string, args ...any) {
	text := strings.TrimRight(fmt.Sprintf(format, args...), "\n")
	l.write(t.UTC().Format("15:04:05.000 ") + strings.ReplaceAll(text, "\n", "\n             ") + "\n")
}

func (l *runLog) write(s string) {
	s = l.redact.String(s)
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := l.human.WriteString(s); err != nil && l.err == nil {
		l.err = fmt.Errorf("write log: %w", err)
	}
}

func (l *runLog) failed(err error) {
	if err == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = fmt.Errorf("write raw log: %w", err)
	}
}

// Close ends both logs and returns the first error there was.
func (l *runLog) Close() error {
	l.Flush()
	for _, f := range []*os.File{l.rf, l.human} {
		l.failed(f.Sync())
		l.failed(f.Close())
	}
	return l.err
}

// tail keeps the last lines that were written to it. Safe for concurrent use.
type tail struct {
	mu    sync.Mutex
	lines []string
	cut   bool
}

// tailLines and tailWidth bound what a tail holds.
const (
	tailLines = 100
	tailWidth = 2 << 10
)

func (t *tail) Add(line []byte) {
	if len(line) > tailWidth {
		line = line[:tailWidth]
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, string(bytes.ToValidUTF8(line, []byte("?"))))
	if len(t.lines) > tailLines {
		t.lines, t.cut = t.lines[1:], true
	}
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := strings.Join(t.lines, "\n")
	if t.cut {
		s = fmt.Sprintf("[only the last %d lines]\n", tailLines) + s
	}
	return s
}
