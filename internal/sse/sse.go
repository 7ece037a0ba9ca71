// Package sse writes server-sent events: one stream, one goroutine, and none for the heartbeats of streams that are silent.
//
// It promises that a reader who stops reading is found out within WriteLimit, and that the server's limits for a whole request do not
// end a stream of hours. It does not resume: whoever writes decides what an event's ID means.
package sse

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// WriteLimit is how long one write to a reader may take; whoever reads slower than that is gone.
const WriteLimit = 10 * time.Second

// Stream writes the events of one answer. It belongs to one goroutine. The first error is kept, and nothing is written after it.
type Stream struct {
	rc *http.ResponseController // itself safe only under mu, as w is

	mu  sync.Mutex // heartbeats come in between
	w   http.ResponseWriter
	err error
}

// New begins the answer, and brings its headers out at once. Other headers must have been set before.
func New(w http.ResponseWriter) *Stream {
	s := &Stream{w: w, rc: http.NewResponseController(w)}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx would hold the events back
	w.WriteHeader(http.StatusOK)
	s.write([]byte("retry: 2000\n\n"))
	return s
}

// KeepAlive sends a heartbeat every so often, and calls gone, once, when it finds that the reader is. Stop it before the handler returns:
// nothing is written after that. While the stream is silent it costs a timer.
func (s *Stream) KeepAlive(every time.Duration, gone func()) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stopped := false // guarded by mu, as is beat
	var beat *time.Timer
	beat = time.AfterFunc(every, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if stopped {
			return
		}
		if s.writeLocked([]byte(heartbeat)); s.err != nil {
			gone()
			return
		}
		beat.Reset(every)
	})
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		stopped = true
		beat.Stop()
	}
}

// Err is the first error: usually that the reader is gone.
func (s *Stream) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Send writes one event, its data as JSON. An empty name is the default, "message"; an empty id leaves the reader's as it is.
func (s *Stream) Send(id, name string, data any) {
	b, err := json.Marshal(data)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.err = fmt.Errorf("marshal event: %w", err)
		return
	}
	if id != "" {
		id = "id: " + id + "\n"
	}
	if name != "" {
		name = "event: " + name + "\n"
	}
	s.write(fmt.Appendf(nil, "%s%sdata: %s\n\n", id, name, b))
}

// Done ends a stream of chat as the clients of such streams expect it.
func (s *Stream) Done() { s.write([]byte("data: [DONE]\n\n")) }

// heartbeat keeps proxies from closing a silent connection, and finds out that the reader is gone.
const heartbeat = ": heartbeat\n\n"

func (s *Stream) write(text []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writeLocked(text)
}

func (s *Stream) writeLocked(text []byte) {
	if s.err != nil {
		return
	}
	_ = s.rc.SetWriteDeadline(time.Now().Add(WriteLimit)) // a writer without deadlines has none to set
	if _, s.err = s.w.Write(text); s.err == nil {
		s.err = s.rc.Flush()
	}
}
