package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/errand-fleet/errand/e2e/chaos/script"
)

// witness is this process's connection to the harness. It is closed by the kernel alone.
type witness struct {
	mu   sync.Mutex
	conn net.Conn
	in   *bufio.Reader
}

// meet tells the witness who we are. Where there is none, the harness is gone and nobody needs us.
func meet(role string) (*witness, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the witness: %w", err)
	}
	addr, err := os.ReadFile(filepath.Join(filepath.Dir(self), script.AddressFile))
	if err != nil {
		return nil, fmt.Errorf("find the witness: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", strings.TrimSpace(string(addr)))
	if err != nil {
		return nil, fmt.Errorf("meet the witness: %w", err)
	}
	w := &witness{conn: conn, in: bufio.NewReader(conn)}
	dir, _ := os.Getwd() // deleted: then it is told without
	_, err = w.tell(script.Word{Role: role, Pid: os.Getpid(), Parent: os.Getppid(), Run: os.Getenv("ERRAND_RUN"), Dir: dir})
	return w, err
}

// tell says one thing and returns when it is noted.
func (w *witness) tell(word script.Word) (script.Reply, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	line, err := json.Marshal(word)
	if err != nil {
		return script.Reply{}, fmt.Errorf("marshal word: %w", err)
	}
	if _, err := w.conn.Write(append(line, '\n')); err != nil {
		return script.Reply{}, fmt.Errorf("tell the witness: %w", err)
	}
	answer, err := w.in.ReadBytes('\n')
	var r script.Reply
	if err == nil {
		err = json.Unmarshal(answer, &r)
	}
	if err != nil {
		return r, fmt.Errorf("hear the witness: %w", err)
	}
	return r, nil
}
