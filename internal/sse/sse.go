// Package sse writes server-sent events, with one goroutine per stream and none for heartbeats.
//
// A client that stops reading is detected within WriteLimit, and the server's limits on whole requests do not end a
// long stream. The package does not resume streams: the caller defines the IDs of events.
package sse

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// WriteLimit is how long one write may take. A slower client is disconnected.
const WriteLimit = 10 * time.Second

// Stream writes the events of one response. It belongs to one goroutine. After the first error nothing is written.
type Stream struct {
	rc *http.ResponseController // itself safe only under mu, as w is

	mu  sync.Mutex // heartbeats come from a timer
	w   http.ResponseWriter
	err error
}

// New begins the response and sends its headers at once. Set other headers before calling it.
func New(w http.ResponseWriter) *Stream {
	s := &Stream{w: w, rc: http.NewResponseController(w)}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // or nginx would buffer the events
	w.WriteHeader(http.StatusOK)
	s.write([]byte("retry: 2000\n\n"))
	return s
}

// KeepAlive sends a heartbeat at an interval, and calls gone once if the client is gone. Call stop before the handler
// returns: nothing is written after that. It uses a timer, not a goroutine.
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

// Err returns the first error, usually that the client is gone.
func (s *Stream) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Send writes an event with its data as JSON. An empty name means "message"; an empty id leaves the client's last ID
// unchanged.
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

// Done writes the data [DONE], which ends a chat stream.
func (s *Stream) Done() { s.write([]byte("data: [DONE]\n\n")) }

// heartbeat keeps proxies from closing a silent connection, and detects that the client is gone.
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
	_ = s.rc.SetWriteDeadline(time.Now().Add(WriteLimit)) // not every writer has deadlines
	if _, s.err = s.w.Write(text); s.err == nil {
		s.err = s.rc.Flush()
	}
}
