package sse

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestStream(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	s := New(w)
	s.Send("", "", "a\nb")
	s.Send("7", "end", map[string]int{"n": 1})
	s.Heartbeat()
	s.Done()
	want := "retry: 2000\n\ndata: \"a\\nb\"\n\nid: 7\nevent: end\ndata: {\"n\":1}\n\n: heartbeat\n\ndata: [DONE]\n\n"
	if got := w.Body.String(); got != want || s.Err() != nil || !w.Flushed {
		t.Errorf("wrote %q, %v, flushed %v; want %q", got, s.Err(), w.Flushed, want)
	}
	if got := w.Header().Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("content type %q", got)
	}
}

func TestNothingAfterAnError(t *testing.T) {
	t.Parallel()
	w := &gone{ResponseRecorder: httptest.NewRecorder()}
	s := New(w)
	s.Heartbeat()
	if w.writes != 1 || !errors.Is(s.Err(), errGone) {
		t.Errorf("%d writes, %v", w.writes, s.Err())
	}
	s = New(httptest.NewRecorder())
	s.Send("", "", func() {})
	if s.Err() == nil {
		t.Error("what is no JSON was sent")
	}
}

var errGone = errors.New("gone")

// gone is a reader that has left.
type gone struct {
	*httptest.ResponseRecorder
	writes int
}

func (g *gone) Write([]byte) (int, error) { g.writes++; return 0, errGone }

var _ http.ResponseWriter = (*gone)(nil)
