package sse

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestStream(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	s := New(w)
	s.Send("", "", "a\nb")
	s.Send("7", "end", map[string]int{"n": 1})
	s.Done()
	want := "retry: 2000\n\ndata: \"a\\nb\"\n\nid: 7\nevent: end\ndata: {\"n\":1}\n\ndata: [DONE]\n\n"
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
	s.Done()
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

// gone is a client that has disconnected.
type gone struct {
	*httptest.ResponseRecorder
	writes int
}

func (g *gone) Write([]byte) (int, error) { g.writes++; return 0, errGone }

var _ http.ResponseWriter = (*gone)(nil)

// beats is a client that counts writes until it disconnects.
type beats struct {
	*httptest.ResponseRecorder
	n, most int
}

func (b *beats) Write(p []byte) (int, error) {
	if b.n++; b.n > b.most {
		return 0, errGone
	}
	return b.ResponseRecorder.Write(p)
}

func TestSilentStreamIsKeptAlive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &beats{ResponseRecorder: httptest.NewRecorder(), most: 100}
		s := New(w)
		stop := s.KeepAlive(time.Second, func() { t.Error("the reader is said to be gone") })
		<-time.After(3500 * time.Millisecond)
		s.Send("", "", 1)
		stop()
		<-time.After(time.Minute)
		if got, want := w.Body.String(), "retry: 2000\n\n"+strings.Repeat(heartbeat, 3)+"data: 1\n\n"; got != want {
			t.Errorf("wrote %q, want %q", got, want)
		}
	})
}

func TestHeartbeatFindsTheReaderGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, gone := &beats{ResponseRecorder: httptest.NewRecorder(), most: 2}, 0
		s := New(w)
		defer s.KeepAlive(time.Second, func() { gone++ })()
		<-time.After(time.Minute)
		synctest.Wait()
		if gone != 1 || w.n != 3 || !errors.Is(s.Err(), errGone) {
			t.Errorf("it was said %d times that the reader is gone, after %d writes; %v", gone, w.n, s.Err())
		}
	})
}
