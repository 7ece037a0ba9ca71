// Package runlog writes the two logs of a run: <id>.log for people, and <id>.ndjson, the CLI's output as it came. Both
// are redacted. A run that is repeated appends to them.
//
// A full disk never stops a run: a Log keeps the first error and returns it from Close, and goes on trying.
package runlog

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

// Log is the log of one run. Raw and Flush belong to the goroutine that reads stdout; the other methods are safe for
// concurrent use.
type Log struct {
	redactor *redact.Redactor
	raw      file
	screen   *redact.Stream // redacts raw
	soon     *time.Timer    // flushes people

	mu     sync.Mutex
	people file
	note   []byte               // buffer for Note
	texts  map[string]*liveText // by their mark
	open   *liveText            // whose line can continue; nil: none
	due    bool                 // soon is running
	err    error
}

// liveText is a text in the log that is still being written.
type liveText struct {
	plain redact.PlainStream
	clean *redact.Stream
	begun bool // some of it is in the log
	blank int  // newlines to be written before more of it
}

const (
	flushAfter = 250 * time.Millisecond // a note is in the file after this time
	keptNote   = 64 << 10               // maximum size of the buffer for notes that is kept
)

// Open creates the directory and both files, readable only by their owner.
func Open(dir, id string, header []string, redactor *redact.Redactor, now time.Time) (*Log, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create log directory: %w", err)
	}
	l, err := open(filepath.Join(dir, id+".log"), filepath.Join(dir, id+".ndjson"), redactor)
	if err != nil {
		return nil, err
	}
	l.Line("# errand " + id)
	l.Line("# started " + now.UTC().Format(time.RFC3339))
	for _, h := range header {
		l.Line("# " + strings.ReplaceAll(h, "\n", " "))
	}
	return l, nil
}

// Discard returns a Log that leaves nothing behind.
func Discard() (*Log, error) { return open(os.DevNull, os.DevNull, nil) }

func open(peoplePath, rawPath string, redactor *redact.Redactor) (*Log, error) {
	people, err := openFile(peoplePath)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	raw, err := openFile(rawPath)
	if err != nil {
		_ = people.f.Close()
		return nil, fmt.Errorf("open raw log: %w", err)
	}
	l := &Log{redactor: redactor, raw: raw, screen: redactor.Stream(), people: people}
	l.texts = map[string]*liveText{}
	l.soon = time.AfterFunc(flushAfter, l.flushNotes)
	return l, nil
}

// Raw appends output of the CLI.
func (l *Log) Raw(text []byte) { l.checkRaw(l.raw.Write(l.screen.Write(text))) }

// BreakRaw ends a line of that output that was broken off, perhaps within a secret.
func (l *Log) BreakRaw() { l.checkRaw(l.raw.Write(append(l.screen.Break(), '\n'))) }

// Flush makes everything written so far visible to readers of the files.
func (l *Log) Flush() {
	l.checkRaw(l.raw.Flush())
	l.flushNotes()
}

func (l *Log) flushNotes() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.due = false
	l.check("write log", l.people.Flush())
}

// Note appends a line for people, with the time of day. It indents continuation lines, so that only a time begins a
// line. The line is in the file after the next Flush, or a moment later.
func (l *Log) Note(t time.Time, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.note = t.UTC().AppendFormat(l.note[:0], "15:04:05.000 ")
	l.note = fmt.Appendf(l.note, format, args...)
	l.put(bytes.TrimRight(l.note, "\n"))
	if cap(l.note) > keptNote {
		l.note = nil
	}
}

// Line appends a line for people without the time.
func (l *Log) Line(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put([]byte(line))
}

// Text appends a piece of a text that is being written, so that readers see it before its end. A text with another
// mark, which begins its lines, is another text. A note or another text in between ends the line, and the text goes on
// in the next one. What may be the beginning of a secret or of a terminal sequence waits for the next piece, or for
// EndText.
func (l *Log) Text(t time.Time, mark, piece string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	x := l.texts[mark]
	if x == nil {
		x = &liveText{clean: l.redactor.Stream()}
		l.texts[mark] = x
	}
	l.putText(t, x, mark, x.clean.Write(x.plain.Write([]byte(piece))))
}

// EndText ends the text with this mark, if there is one.
func (l *Log) EndText(mark string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endText(mark)
}

// endText requires mu.
func (l *Log) endText(mark string) {
	x := l.texts[mark]
	if x == nil {
		return
	}
	l.putText(time.Now(), x, mark, x.clean.Write(x.plain.Flush()))
	l.putText(time.Now(), x, mark, x.clean.Break())
	if l.open == x {
		l.breakText()
	}
	x.begun, x.blank = false, 0
}

// breakText ends the line of the text that is being written. It requires mu.
func (l *Log) breakText() {
	if l.open != nil {
		l.check("write log", l.people.Write(newline))
		l.open = nil
	}
}

// putText requires mu. It holds back newlines at the end of the text, which are not worth a line.
func (l *Log) putText(t time.Time, x *liveText, mark string, piece []byte) {
	body := bytes.TrimRight(piece, "\n")
	if len(body) == 0 {
		x.blank += len(piece)
		return
	}
	if l.open != x {
		l.breakText()
		head := t.UTC().AppendFormat(nil, "15:04:05.000 ")
		head = append(head, mark...)
		if x.begun {
			head = append(head, "… "...)
		}
		l.check("write log", l.people.Write(head))
		x.blank = 0
	}
	for range x.blank {
		l.check("write log", l.people.Write(continued))
	}
	l.check("write log", l.people.Write(bytes.ReplaceAll(body, newline, continued)))
	x.begun, x.blank = true, len(piece)-len(body)
	l.open = x
	l.flushSoon()
}

var (
	newline   = []byte("\n")
	continued = []byte("\n             ") // begins a continuation line
)

// put requires mu.
func (l *Log) put(text []byte) {
	l.breakText()
	text = l.redactor.Bytes(redact.Plain(text)) // first Plain: terminal sequences could hide a secret
	var before []byte
	for line := range bytes.SplitSeq(text, newline) {
		l.check("write log", l.people.Write(before))
		l.check("write log", l.people.Write(line))
		before = continued
	}
	l.check("write log", l.people.Write(newline))
	l.flushSoon()
}

// flushSoon requires mu.
func (l *Log) flushSoon() {
	if !l.due {
		l.due = true
		l.soon.Reset(flushAfter)
	}
}

func (l *Log) checkRaw(err error) {
	if err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.check("write raw log", err)
	}
}

// check keeps the first error. It requires mu.
func (l *Log) check(action string, err error) {
	if err != nil && l.err == nil {
		l.err = fmt.Errorf("%s: %w", action, err)
	}
}

// Close closes both files and returns the first error of the Log. The files share the wait for the disk.
func (l *Log) Close() error {
	l.soon.Stop()
	l.checkRaw(l.raw.Write(l.screen.Flush()))
	closed := make(chan error, 1)
	go func() { closed <- l.raw.Close() }()
	l.mu.Lock()
	defer l.mu.Unlock()
	for mark := range l.texts {
		l.endText(mark)
	}
	err := l.people.Close()
	l.check("write raw log", <-closed)
	l.check("write log", err)
	return l.err
}

// buffers has the buffers of files that have nothing to write, so that a run that waits needs none.
var buffers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, 32<<10) }}

// writeOutStep is how much is written to a file before the kernel is made to bring it to the disk. By itself the kernel
// waits for up to half a minute, and then the end of a run would wait for the disk.
const writeOutStep = 8 << 20

// file is a buffered file.
type file struct {
	f        *os.File
	w        *bufio.Writer // nil: nothing to write
	written  int           // since the latest write-out began
	writeOut chan struct{} // has an element while one begins
}

func openFile(path string) (file, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return file{f: f, writeOut: make(chan struct{}, 1)}, err
}

func (f *file) Write(b []byte) error {
	if f.w == nil {
		f.w, _ = buffers.Get().(*bufio.Writer)
		f.w.Reset(f.f)
	}
	_, err := f.w.Write(b)
	if err != nil {
		f.w.Reset(f.f) // bufio would keep the error, but the disk may have room again
	}
	f.grew(len(b))
	return err
}

// grew counts n bytes, and begins a write-out if it is time and none begins. It does not wait.
func (f *file) grew(n int) {
	if f.written += n; f.written < writeOutStep {
		return
	}
	select {
	case f.writeOut <- struct{}{}:
		f.written = 0
		go func(f file) {
			startWriteOut(f.f)
			<-f.writeOut
		}(*f)
	default:
	}
}

func (f *file) Flush() (err error) {
	if f.w != nil {
		err = f.w.Flush()
		f.w.Reset(nil) // also drops what was not written after an error
		buffers.Put(f.w)
		f.w = nil
	}
	return err
}

func (f *file) Close() error {
	f.writeOut <- struct{}{} // waits for the latest write-out to begin
	<-f.writeOut
	return errors.Join(f.Flush(), f.f.Sync(), f.f.Close())
}
