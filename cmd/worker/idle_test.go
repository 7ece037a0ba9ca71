package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/cmd/internal/assemble"
)

// commands returns the commands that Redis executes from now on, those of scripts included.
func (w *world) commands() *bufio.Scanner {
	w.Helper()
	address, err := url.Parse(w.redis)
	if err != nil {
		w.Fatal(err)
	}
	c, err := (&net.Dialer{}).DialContext(w.Context(), "tcp", address.Host)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = c.Close() })
	password, _ := address.User.Password()
	if _, err := fmt.Fprintf(c, "AUTH %s\r\nMONITOR\r\n", password); err != nil {
		w.Fatal(err)
	}
	return bufio.NewScanner(c)
}

// A worker that is alone and idle sends Redis 160 commands a second (docs/scaling.md). A second is what asynq waits
// between two requests for the due deliveries of a queue.
func TestIdleWorkerAsksLittle(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	lines := w.commands()
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int, 1)
	go func() { code <- run(ctx, invocation{nil, w.getenv, io.Discard, w.Output()}, assemble.Options{}) }()

	const settled, end, most = 3, 11, 2 * 160
	seconds, sum, asked := 0, 0, map[string]int{}
	for seconds < end && lines.Scan() {
		if strings.Contains(lines.Text(), `"asynq:{review}:retry" "asynq:{review}:pending"`) {
			seconds++
		}
		if _, command, ok := strings.Cut(lines.Text(), `] "`); ok && seconds >= settled {
			name, _, _ := strings.Cut(command, `"`)
			asked[name]++
			sum++
		}
	}
	if sum == 0 || sum > most*(end-settled) {
		t.Errorf("%d commands in %d s, want at most %d a second: %v", sum, end-settled, most, asked)
	}
	cancel()
	if c := <-code; c != 0 {
		t.Errorf("exit code %d", c)
	}
}
