// Package sse writes server-sent events: one stream, one goroutine.
//
// It promises that a reader who stops reading is found out within WriteLimit, and that the server's limits for a whole request do not
// end a stream of hours. It does not resume: whoever writes decides what an event's ID means.
package sse

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// WriteLimit is how long one write to a reader may take; whoever reads slower than that is gone.
const WriteLimit = 10 * time.Second

// Stream writes the events of one answer. It belongs to one goroutine. The first error is kept, and nothing is written after it.
type Stream struct {
	w   http.ResponseWriter
	rc  *http.ResponseController
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
	s.write("retry: 2000\n\n")
	return s
}

// Err is the first error: usually that the reader is gone.
func (s *Stream) Err() error { return s.err }

// Send writes one event, its data as JSON. An empty name is the default, "message"; an empty id leaves the reader's as it is.
func (s *Stream) Send(id, name string, data any) {
	b, err := json.Marshal(data)
	if err != nil {
		s.err = fmt.Errorf("marshal event: %w", err)
		return
	}
	if id != "" {
		id = "id: " + id + "\n"
	}
	if name != "" {
		name = "event: " + name + "\n"
	}
	s.write(fmt.Sprintf("%s%sdata: %s\n\n", id, name, b))
}

// Done ends a stream of chat as the clients of such streams expect it.
func (s *Stream) Done() { s.write("data: [DONE]\n\n") }

// Heartbeat keeps proxies from closing a silent connection, and finds out that the reader is gone.
func (s *Stream) Heartbeat() { s.write(": heartbeat\n\n") }

func (s *Stream) write(text string) {
	if s.err != nil {
		return
	}
	_ = s.rc.SetWriteDeadline(time.Now().Add(WriteLimit)) // a writer without deadlines has none to set
	if _, s.err = s.w.Write([]byte(text)); s.err == nil {
		s.err = s.rc.Flush()
	}
}
