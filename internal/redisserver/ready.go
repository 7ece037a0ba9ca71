package redisserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"
)

const (
	patience = 10 * time.Second      // for a server that does not answer at all
	between  = 2 * time.Millisecond  // between connects; a start takes about 10 ms
	answer   = 2 * time.Second       // for one AUTH and PING
	loading  = 20 * time.Millisecond // between pings while the server reads its append-only file
)

// errLoading means that the server is up and still reads its file. That is progress and does not count against
// patience.
var errLoading = errors.New("loading")

// ready waits until the server accepts its password. It returns an error if the server never will.
func (s *Server) ready(ctx context.Context) error {
	deadline := time.Now().Add(patience)
	for {
		err := s.ping(ctx)
		if err == nil {
			return nil
		}
		wait := between
		if errors.Is(err, errLoading) {
			deadline, wait = time.Now().Add(patience), loading
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("no answer for %s: %w", patience, err)
		}
		select {
		case <-s.exited:
			return fmt.Errorf("it ended: %w", errOr(s.exit, errors.New("exit status 0")))
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}

// ping sends AUTH and PING on a new connection. Only our server knows the password, so another program on the port
// does not pass.
func (s *Server) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", s.addr())
	if err != nil {
		return err
	}
	defer conn.Close()
	if at, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(at)
	}
	if _, err := fmt.Fprintf(conn, "*2\r\n$4\r\nAUTH\r\n$%d\r\n%s\r\n*1\r\n$4\r\nPING\r\n", len(s.password), s.password); err != nil {
		return err
	}
	r := bufio.NewReader(conn)
	for _, want := range []string{"+OK", "+PONG"} {
		line, err := r.ReadString('\n')
		switch line = strings.TrimSpace(line); {
		case err != nil:
			return err
		case strings.HasPrefix(line, "-LOADING"):
			return errLoading
		case line != want:
			return fmt.Errorf("unexpected answer %q", line)
		}
	}
	return nil
}

func errOr(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// tail keeps the end of the server's log for the error of a failed start.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

const tailSize = 2 << 10

// Write implements io.Writer and never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - tailSize; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.kept))
}
