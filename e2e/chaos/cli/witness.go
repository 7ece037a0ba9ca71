package main

import (
	"bufio"
	"bytes"
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
	place := filepath.Dir(self)
	addr, err := os.ReadFile(filepath.Join(place, script.AddressFile))
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
	word := script.Word{Role: role, Run: os.Getenv("ERRAND_RUN"), Dir: dir}
	if word.Pid, word.Parent, err = outside(filepath.Join(place, script.ProcDir)); err != nil {
		return nil, err
	}
	_, err = w.tell(word)
	return w, err
}

// outside returns the PIDs of this process and its parent as the harness has them, whose /proc is given.
func outside(proc string) (pid, parent int, err error) {
	stat, err := os.ReadFile(filepath.Join(proc, "self", "stat"))
	if err != nil {
		return 0, 0, fmt.Errorf("look at this process: %w", err)
	}
	name := bytes.LastIndexByte(stat, ')') // which may have anything in it
	var state string
	if _, err := fmt.Sscan(string(stat), &pid); err != nil {
		return 0, 0, fmt.Errorf("look at this process: %w", err)
	}
	if _, err := fmt.Sscan(string(stat[name+1:]), &state, &parent); err != nil {
		return 0, 0, fmt.Errorf("look at this process: %w", err)
	}
	return pid, parent, nil
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
