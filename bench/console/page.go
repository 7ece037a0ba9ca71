package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/errand-fleet/errand/bench/door"
)

// patience bounds every wait.
const patience = 60 * time.Second

// page is a task's page in a browser, which follows the task's events on a separate connection.
type page struct {
	conn net.Conn
	done chan error
}

// openPage loads a page and follows its task. It returns when the stream has started.
func openPage(ctx context.Context, addr, id string, to *tally) (*page, error) {
	conn, in, err := dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	resp, err := get(conn, in, "/tasks/"+id)
	if err != nil {
		return nil, fmt.Errorf("load the page of %s: %w", id, err)
	}
	text, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return nil, fmt.Errorf("load the page of %s: %w", id, err)
	}
	found := live.FindSubmatch(text)
	if found == nil {
		return nil, fmt.Errorf("load the page of %s: it follows no events", id)
	}
	return follow(ctx, addr, html.UnescapeString(string(found[1]))+"?after="+html.UnescapeString(string(found[2])), to)
}

// live matches the part of a page with the stream and the first event.
var live = regexp.MustCompile(`data-events="([^"]+)" data-after="([^"]*)"`)

// follow reads a stream of events until the page is closed or the stream ends.
func follow(ctx context.Context, addr, path string, to *tally) (*page, error) {
	conn, in, err := dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	resp, err := get(conn, in, path) //nolint:bodyclose // it ends with its connection
	if err != nil {
		return nil, errors.Join(fmt.Errorf("follow %s: %w", path, err), conn.Close())
	}
	p := &page{conn: conn, done: make(chan error, 1)}
	body := bufio.NewReaderSize(resp.Body, 32<<10) // an event has at most 16 KB
	if first, err := body.ReadString('\n'); err != nil || first != "retry: 2000\n" {
		return nil, errors.Join(fmt.Errorf("follow %s: it begins with %q: %w", path, first, err), conn.Close())
	}
	go func() { p.done <- read(body, to) }()
	return p, nil
}

// read reads the events of a stream, which must be in order, until it ends.
func read(in *bufio.Reader, to *tally) error {
	var id, last string
	for {
		line, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed):
			return nil
		case errors.Is(err, bufio.ErrBufferFull):
			return errors.New("read events: a line is longer than any that was written")
		case err != nil:
			return fmt.Errorf("read events: %w", err)
		}
		if value, ok := bytes.CutPrefix(line, []byte("id: ")); ok {
			if last, id = id, string(bytes.TrimSpace(value)); !later(id, last) {
				return fmt.Errorf("read events: %s comes after %s", id, last)
			}
		}
		if value, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			var e struct {
				Time time.Time `json:"time"`
			}
			if err := json.Unmarshal(value, &e); err != nil {
				return fmt.Errorf("read events: %w", err)
			}
			to.add(time.Since(e.Time))
		}
	}
}

// later compares the IDs of events: a time in milliseconds, which has the same length for all, and a number.
func later(id, than string) bool {
	var ms1, n1, ms2, n2 int64
	_, _ = fmt.Sscanf(id, "%d-%d", &ms1, &n1)
	_, _ = fmt.Sscanf(than, "%d-%d", &ms2, &n2)
	return ms1 > ms2 || ms1 == ms2 && n1 > n2
}

// close closes the page and returns an error if it failed before.
func (p *page) close() error {
	_ = p.conn.Close()
	return <-p.done
}

func dial(ctx context.Context, addr string) (net.Conn, *bufio.Reader, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, nil, fmt.Errorf("reach the front door: %w", err)
	}
	return conn, bufio.NewReader(conn), nil
}

// get requests a page on a connection that stays open.
func get(conn net.Conn, in *bufio.Reader, path string) (*http.Response, error) {
	_, err := fmt.Fprintf(conn,
		"GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nAccept: text/html, text/event-stream\r\n"+
			"User-Agent: Mozilla/5.0 (X11; Linux x86_64) "+
			"AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36\r\n"+
			"Accept-Language: en\r\nAccept-Encoding: identity\r\n"+
			"Sec-Fetch-Mode: cors\r\nSec-Fetch-Site: same-origin\r\n\r\n", path, conn.RemoteAddr(), door.Token)
	if err != nil {
		return nil, err
	}
	resp, err := http.ReadResponse(in, nil)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.Join(fmt.Errorf("it is answered with %s", resp.Status), resp.Body.Close())
	}
	return resp, err
}

// tally counts the events that all pages have received, and their delays.
type tally struct {
	mu     sync.Mutex
	delays []time.Duration
	want   int
	enough chan struct{} // closed when the wanted number is reached
}

// seen returns the delays, sorted.
type seen struct{ door.Load }

func (t *tally) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.delays, t.want, t.enough = nil, -1, make(chan struct{})
}

func (t *tally) add(late time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.delays = append(t.delays, late); len(t.delays) == t.want {
		close(t.enough)
	}
}

// wait waits until the pages have received that many events.
func (t *tally) wait(ctx context.Context, want int) (seen, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	t.mu.Lock()
	if t.want = want; len(t.delays) >= want {
		close(t.enough)
	}
	t.mu.Unlock()
	select {
	case <-t.enough:
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.delays) != want {
		return seen{}, fmt.Errorf("%d events were seen in all pages, not %d", len(t.delays), want)
	}
	slices.Sort(t.delays)
	return seen{door.Load{Delays: t.delays}}, nil
}
