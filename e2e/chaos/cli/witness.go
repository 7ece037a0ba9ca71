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

// witness is this process's connection to the harness. Only the kernel closes it.
type witness struct {
	mu   sync.Mutex
	conn net.Conn
	in   *bufio.Reader
}

// meet registers this process at the witness. Without a witness the harness is gone, and the process ends.
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
	dir, _ := os.Getwd() // empty if deleted
	_, err = w.tell(script.Word{
		Role: role, Pid: os.Getpid(), Parent: os.Getppid(), Run: os.Getenv("ERRAND_RUN"), Dir: dir,
	})
	return w, err
}

// tell sends one message and returns when the witness has noted it.
func (w *witness) tell(word script.Word) (script.Reply, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	line, err := json.Marshal(word)
	if err != nil {
		return script.Reply{}, fmt.Errorf("marshal word: %w", err)
	}
	if _, err := w.conn.Write(append(line, '\n')); err != nil {
		return script.Reply{}, fmt.Errorf("write to the witness: %w", err)
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
