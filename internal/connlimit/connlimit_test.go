package connlimit

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Connections that are idle give way to others; those in use do not, and are not more than the limit.
func TestServer(t *testing.T) {
	t.Parallel()
	const limit = 3
	entered, leave := make(chan struct{}), make(chan struct{})
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/wait" {
			entered <- struct{}{}
			<-leave
		}
	}))
	Server(s.Config, limit)
	s.Start()
	defer s.Close()
	type client struct {
		net.Conn
		*bufio.Reader
	}
	ask := func(c client, path string) int {
		t.Helper()
		if path != "" {
			if _, err := io.WriteString(c.Conn, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
		}
		res, err := http.ReadResponse(c.Reader, nil)
		if err != nil {
			return 0
		}
		_ = res.Body.Close()
		return res.StatusCode
	}
	dial := func() client {
		c, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return client{c, bufio.NewReader(c)}
	}
	open := func(path string) client {
		c := dial()
		if _, err := io.WriteString(c.Conn, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		return c
	}
	var idle []client
	for range limit {
		c := dial()
		if status := ask(c, "/"); status != http.StatusOK {
			t.Fatalf("status %d", status)
		}
		idle = append(idle, c)
	}
	var waiting []client
	for i := range limit {
		waiting = append(waiting, open("/wait"))
		<-entered
		if status := ask(idle[i], ""); status != 0 { // in the order in which they came to rest
			t.Errorf("idle connection %d is still open: %d", i, status)
		}
	}
	if status := ask(dial(), "/"); status != http.StatusServiceUnavailable {
		t.Errorf("one more than all: %d", status)
	}
	fresh := dial()
	for range limit {
		dial()
	}
	if status := ask(fresh, ""); status != 0 {
		t.Errorf("the oldest new connection is still there: %d", status)
	}
	close(leave)
	for i, c := range waiting {
		if status := ask(c, ""); status != http.StatusOK {
			t.Errorf("connection %d in use: %d", i, status)
		}
	}
	if status := ask(waiting[0], "/"); status != http.StatusOK {
		t.Errorf("afterwards: %d", status)
	}
}

// Who announces a body and does not send it holds no place in use: the oldest of them is closed, and others are
// answered.
func TestBodiesThatDoNotCome(t *testing.T) {
	t.Parallel()
	const limit = 3
	begun, closed := make(chan struct{}, 3*limit+1), make(chan struct{}, limit+1)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun <- struct{}{}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			closed <- struct{}{}
			return
		}
		_, _ = w.Write(body)
	}))
	Server(s.Config, limit)
	s.Start()
	defer s.Close()
	for range limit + 1 {
		c, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		<-begun // else it may be closed as a new connection
	}
	<-closed
	for range 2 * limit {
		res, err := s.Client().Post(s.URL, "text/plain", strings.NewReader("hello"))
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(res.Body); err != nil || string(body) != "hello" || res.StatusCode != http.StatusOK {
			t.Errorf("%s: %q, %v", res.Status, body, err)
		}
		_ = res.Body.Close()
	}
}
