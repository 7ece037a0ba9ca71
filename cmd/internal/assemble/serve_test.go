package assemble

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
)

// However many connections are held, a request that comes now is answered, and what streams goes on.
func TestHeldConnectionsLockNobodyOut(t *testing.T) {
	t.Parallel()
	l, err := Listen(t.Context(), "127.0.0.1:0", "X")
	if err != nil {
		t.Fatal(err)
	}
	more := make(chan string)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /slack/events", func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
	mux.HandleFunc("GET /stream", func(w http.ResponseWriter, r *http.Request) {
		for line := range more {
			fmt.Fprintln(w, line)
			_ = http.NewResponseController(w).Flush()
		}
	})
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, l, mux, nil, slog.New(slog.DiscardHandler)) }()
	hold := func(sent string) net.Conn {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if _, err := io.WriteString(c, sent); err != nil {
			t.Fatal(err)
		}
		return c
	}
	stream := bufio.NewReader(hold("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n"))
	hear := func(want string) {
		t.Helper()
		more <- want
		for line := ""; line != want+"\n"; {
			if line, err = stream.ReadString('\n'); err != nil {
				t.Fatalf("waiting for %q: %v", want, err)
			}
		}
	}
	hear("one")
	silent, slow := hold(""), hold("POST /slack/ev")
	for range maxConnections() {
		hold("")
	}
	for _, c := range []net.Conn{silent, slow} {
		if n, err := c.Read(make([]byte, 1)); err == nil {
			t.Errorf("the oldest connections are still open, %d bytes", n)
		}
	}
	c := hold("POST /slack/events HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(res.Body); err != nil || string(body) != "hi" {
		t.Errorf("answered %q, %v", body, err)
	}
	_ = res.Body.Close()
	hear("two")
	close(more)
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
