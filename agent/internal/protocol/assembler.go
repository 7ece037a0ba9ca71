package protocol

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// MaxLine is the maximum length of a line that is decoded. The longest line seen from the CLI had 5.6 MB (an edit
	// of a large file, sent with the original file); a limit of 1 MB, the SDKs' default, loses runs
	// (claude-code#72226).
	MaxLine = 16 << 20
	// headBytes is the length of the part that is decoded of a line that is too long.
	headBytes = 64 << 10
)

// assembler joins the pieces of lines. It is not safe for concurrent use.
type assembler struct {
	limit int    // of a line: MaxLine, or less in tests
	buf   []byte // the line so far, if it has several pieces
	lost  bool   // the line is too long, and its rest is ignored
}

// Add adds a piece. It returns the line if the piece completes it, otherwise nil. For a line that is too long it
// returns what has arrived of it, once, with whole unset. The line is valid until Release.
func (a *assembler) Add(p piece) (line []byte, whole bool) {
	a.lost = a.lost && !p.first
	if p.first && p.last {
		return p.text, true // the usual case: no copy
	}
	if a.lost {
		return nil, false
	}
	a.buf = append(a.buf, p.text...)
	a.lost = len(a.buf) > a.limit
	if a.lost || p.last {
		return a.buf, !a.lost
	}
	return nil, false
}

// Release frees the memory of the latest line, so that a waiting run does not keep it.
func (a *assembler) Release() { a.buf = nil }

// Bounds of a Tail.
const (
	tailLines = 100
	tailWidth = 2 << 10 // bytes of a line
)

// Tail keeps the last lines of a text. It is safe for concurrent use.
type Tail struct {
	mu    sync.Mutex
	lines [tailLines][]byte // line i is at i % tailLines
	count int               // lines so far
	open  bool              // the last line continues
}

// Add adds text, which may be part of a line.
func (t *Tail) Add(text []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for line := range bytes.Lines(text) {
		if !t.open {
			t.lines[t.count%tailLines] = nil
			t.count++
		}
		last := &t.lines[(t.count-1)%tailLines]
		piece, ended := bytes.CutSuffix(line, []byte("\n"))
		*last = append(*last, piece[:min(len(piece), tailWidth-len(*last))]...)
		t.open = !ended
	}
}

// String joins the lines. It says so if there were more.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := max(0, t.count-tailLines)
	lines := make([]string, 0, tailLines+1)
	if first > 0 {
		lines = append(lines, fmt.Sprintf("[only the last %d lines]", tailLines))
	}
	for i := first; i < t.count; i++ {
		lines = append(lines, strings.ToValidUTF8(string(t.lines[i%tailLines]), ""))
	}
	return strings.Join(lines, "\n")
}

// writeLimit limits one write: a CLI that has not emptied its pipe for this long never will.
const writeLimit = time.Minute

// Stdin writes the CLI's input, one JSON object per line. A line that is not JSON kills the CLI (2.1.329), so
// Stdin marshals all values itself. It is safe for concurrent use, but must not be used on the goroutine that reads
// stdout.
type Stdin struct {
	f     *os.File
	limit atomic.Int64 // of a write, in nanoseconds; 0: writeLimit

	mu     sync.Mutex
	closed bool
}

// NewStdin returns a Stdin that writes to f and closes it.
func NewStdin(f *os.File) *Stdin { return &Stdin{f: f} }

// Send writes one value. It fails if the CLI has exited or does not read.
func (s *Stdin) Send(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("marshal CLI input: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return os.ErrClosed
	}
	_ = s.f.SetWriteDeadline(time.Now().Add(cmp.Or(time.Duration(s.limit.Load()), writeLimit)))
	if _, err := s.f.Write(append(line, '\n')); err != nil {
		// Part of the line may be in the pipe; the CLI would read the next value as its end.
		s.closed = true
		_ = s.f.Close()
		return fmt.Errorf("write CLI input: %w", err)
	}
	return nil
}

// SetWriteLimit makes the current write and every later one fail after d.
func (s *Stdin) SetWriteLimit(d time.Duration) {
	s.limit.Store(int64(d))
	_ = s.f.SetWriteDeadline(time.Now().Add(d))
}

// Close ends the input, so that the CLI finishes its work and exits. It may be called again.
func (s *Stdin) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		_ = s.f.Close()
	}
}
