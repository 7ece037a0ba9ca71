package agent

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// stdinPatience bounds one write: a CLI that has not emptied its pipe for this long is not going to.
const stdinPatience = time.Minute

// stdin writes the CLI's input, one JSON object per line. A single line that is not JSON kills the CLI (claude-cli.md §5), so only
// values marshalled here get in. Safe for concurrent use; never called from the goroutine that reads stdout.
type stdin struct {
	f       *os.File
	hurried atomic.Int64 // nanoseconds, 0 for stdinPatience

	mu     sync.Mutex
	closed bool
}

// Send writes one value. It fails when the CLI is gone or does not read.
func (s *stdin) Send(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("marshal CLI input: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return os.ErrClosed
	}
	_ = s.f.SetWriteDeadline(time.Now().Add(s.patience()))
	if _, err := s.f.Write(append(line, '\n')); err != nil {
		// Half a line may be in the pipe: whatever followed would be read as its end.
		s.closed = true
		_ = s.f.Close()
		return fmt.Errorf("write CLI input: %w", err)
	}
	return nil
}

// Hurry makes a write that is under way, and every later one, fail after d.
func (s *stdin) Hurry(d time.Duration) {
	s.hurried.Store(int64(d))
	_ = s.f.SetWriteDeadline(time.Now().Add(d))
}

func (s *stdin) patience() time.Duration {
	if d := s.hurried.Load(); d > 0 {
		return time.Duration(d)
	}
	return stdinPatience
}

// Close ends the input: the CLI finishes its work and exits. It may be repeated.
func (s *stdin) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		_ = s.f.Close()
	}
}
