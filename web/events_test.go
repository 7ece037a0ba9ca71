package web

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/web/internal/view"
)

// reading is an event stream that the test reads.
type reading struct {
	*harness
	in *bufio.Reader
}

func (h *harness) read(path string, hs ...string) *reading {
	h.Helper()
	resp, err := h.server.Client().Do(h.request(http.MethodGet, path, "", hs))
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		h.Fatalf("%s: %s %s", path, resp.Status, resp.Header.Get("Content-Type"))
	}
	return &reading{h, bufio.NewReader(resp.Body)}
}

// message is an event or a comment of a stream.
type message struct{ id, name, data, comment string }

// next reads a message. It returns false at the end of the stream.
func (r *reading) next() (m message, more bool) {
	r.Helper()
	for {
		line, err := r.in.ReadString('\n')
		if err != nil {
			return m, false
		}
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch field {
		case "id":
			m.id = value
		case "event":
			m.name = value
		case "data":
			m.data = value
		case "":
			m.comment = value
			if line == "\n" && (m.data != "" || m.comment != "") {
				return m, true
			}
			if m.comment != "" {
				return m, true
			}
		}
	}
}

// text reads the next event, which must be a text.
func (r *reading) text() (text, id string) {
	r.Helper()
	m, _ := r.next()
	var e agent.Event
	if err := json.Unmarshal([]byte(m.data), &e); err != nil || m.name != "" || e.Kind != agent.Text {
		r.Fatalf("%+v is not a text: %v", m, err)
	}
	return e.Text, m.id
}

// end reads the last event.
func (r *reading) end() view.Task {
	r.Helper()
	m, _ := r.next()
	var v view.Task
	if err := json.Unmarshal([]byte(m.data), &v); err != nil || m.name != "end" {
		r.Fatalf("%+v is not the end: %v", m, err)
	}
	if m, more := r.next(); more {
		r.Errorf("got %+v after the end", m)
	}
	return v
}

func said(texts ...string) (events []agent.Event) {
	for _, text := range texts {
		events = append(events, agent.Event{Kind: agent.Text, Text: text})
	}
	return events
}

func TestEventsAreFollowed(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.submit(1)
	c := h.Claim(id)
	h.Append(c, said("one", "two")...)
	r := h.read("/api/tasks/" + id + "/events")
	var got, ids []string
	next := func() {
		text, id := r.text()
		got, ids = append(got, text), append(ids, id)
	}
	next()
	next()
	h.Append(c, said("three")...) // while it is read
	next()
	h.End(c, tasks.Ending{Kind: tasks.Failed, Reason: "No."})
	if v := r.end(); v.State != "ended" || v.Sentence != "No." {
		t.Errorf("the end is %+v", v)
	}
	if diff := cmp.Diff([]string{"one", "two", "three"}, got); diff != "" {
		t.Error(diff)
	}

	// A client continues after the event in the header or in the query; the header takes precedence.
	for _, again := range []*reading{
		h.read("/api/tasks/"+id+"/events", "Last-Event-ID", ids[1]),
		h.read("/api/tasks/" + id + "/events?after=" + ids[1]),
		h.read("/api/tasks/"+id+"/events?after="+ids[0], "Last-Event-ID", ids[1]),
	} {
		if text, _ := again.text(); text != "three" {
			t.Errorf("after two: %s", text)
		}
		again.end()
	}
	// This works with only the end left, and with nothing left.
	last, _ := h.read("/api/tasks/"+id+"/events", "Last-Event-ID", ids[2]).next()
	if last.name != "end" || last.id == "" {
		t.Errorf("after three: %+v", last)
	}
	h.read("/api/tasks/"+id+"/events", "Last-Event-ID", last.id).end()
}

func TestBadEventIDs(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.submit(1)
	for _, after := range []string{"x", "1", "1-", "-1", "1-x", "99999999999999999999-0", "1-0%20COUNT"} {
		h.problem(h.get("/api/tasks/"+id+"/events?after="+after), http.StatusBadRequest)
	}
}

func TestSilentStreamHasHeartbeats(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(c *Config) { c.Heartbeat = time.Millisecond })
	r := h.read("/api/tasks/" + h.submit(1) + "/events")
	for range 3 {
		if m, _ := r.next(); m.comment != "heartbeat" {
			t.Errorf("got %+v", m)
		}
	}
}

// Shutdown waits for open requests: without Close, this one would last until its context ends.
func TestShutdownEndsStreams(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.server.Config.RegisterOnShutdown(func() { _ = h.handler.Close() })
	r := h.read("/api/tasks/" + h.submit(1) + "/events")
	ctx := await.Context(t)
	if err := h.server.Config.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	if m, more := r.next(); more {
		t.Errorf("got %+v after the shutdown: a browser would not reconnect", m)
	}
}

// stuck is a client that accepts n writes, and then none until the write deadline.
type stuck struct {
	*httptest.ResponseRecorder
	n         int
	deadlines int
}

func (s *stuck) SetWriteDeadline(d time.Time) error {
	if d.After(time.Now()) && d.Before(time.Now().Add(time.Minute)) {
		s.deadlines++
	}
	return nil
}

func (s *stuck) Write(b []byte) (int, error) {
	if s.n--; s.n < 0 {
		return 0, os.ErrDeadlineExceeded
	}
	return s.ResponseRecorder.Write(b)
}

func TestStuckReaderIsLeft(t *testing.T) {
	t.Parallel()
	h := newHarness(t, func(c *Config) { c.Heartbeat = time.Millisecond })
	s := &stuck{ResponseRecorder: httptest.NewRecorder(), n: 3}
	h.handler.ServeHTTP(s, h.request(http.MethodGet, "/api/tasks/"+h.submit(1)+"/events", "", nil)) // returns
	if s.deadlines != 4 {
		t.Errorf("of 4 writes %d had a deadline", s.deadlines)
	}
}

// frozen is a client that accepts n writes, and then blocks until let is closed.
type frozen struct {
	*httptest.ResponseRecorder
	n        int
	has, let chan struct{} // has is closed with the n-th write
}

func (f *frozen) Write(b []byte) (int, error) {
	if f.n--; f.n == 0 {
		close(f.has)
	} else if f.n < 0 {
		<-f.let
	}
	return f.ResponseRecorder.Write(b)
}

// A slow client does not delay others, and misses no event.
func TestSlowBrowserHoldsUpNobody(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.submit(1)
	c := h.Claim(id)
	slow, over := &frozen{
		ResponseRecorder: httptest.NewRecorder(), n: 2, has: make(chan struct{}), let: make(chan struct{}),
	}, make(chan struct{})
	req := h.request(http.MethodGet, "/api/tasks/"+id+"/events", "", nil)
	go func() {
		defer close(over)
		h.handler.ServeHTTP(slow, req)
	}()
	fast := h.read("/api/tasks/" + id + "/events")
	var want []string
	for n := range 100 {
		if n == 1 {
			<-slow.has
		}
		text := strconv.Itoa(n)
		h.Append(c, said(text)...)
		if got, _ := fast.text(); got != text {
			t.Fatalf("event %d is %s", n, got)
		}
		want = append(want, text)
	}
	h.End(c, tasks.Ending{Kind: tasks.Answered})
	fast.end()
	close(slow.let)
	<-over
	r, got := &reading{h, bufio.NewReader(slow.Body)}, []string(nil)
	for range want {
		text, _ := r.text()
		got = append(got, text)
	}
	r.end()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestHeadOfAStreamReturns(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	w, r := httptest.NewRecorder(), h.request(http.MethodHead, "/api/tasks/"+h.submit(1)+"/events", "", nil)
	h.handler.ServeHTTP(w, r)
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "text/event-stream" || r.Context().Err() != nil {
		t.Errorf("%d %s, %v", w.Code, w.Header().Get("Content-Type"), r.Context().Err())
	}
}
