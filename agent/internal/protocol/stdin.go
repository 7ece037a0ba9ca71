package protocol

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

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
