package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// writeLimit is how long one write to a reader may take; whoever reads slower than that is gone.
const writeLimit = 10 * time.Second

// sse writes server-sent events. It belongs to one goroutine. The first error is kept, and nothing is written after it.
type sse struct {
	w   http.ResponseWriter
	rc  *http.ResponseController
	err error
}

// newSSE begins the answer. Every write has a deadline of its own, so that neither the server's limits for a whole request end a
// stream of two hours nor a reader who stopped reading holds it for ever.
func newSSE(w http.ResponseWriter) *sse {
	s := &sse{w: w, rc: http.NewResponseController(w)}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would hold the events back
	w.WriteHeader(http.StatusOK)
	s.write("retry: 2000\n\n") // and brings the headers out at once
	return s
}

// send writes one event. An empty name is the default, "message"; an empty id leaves the reader's as it is.
func (s *sse) send(id, name string, data any) {
	b, err := json.Marshal(data)
	if err != nil {
		s.err = err
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

// heartbeat keeps proxies from closing a silent connection, and finds out that the reader is gone.
func (s *sse) heartbeat() { s.write(": heartbeat\n\n") }

func (s *sse) write(text string) {
	if s.err != nil {
		return
	}
	_ = s.rc.SetWriteDeadline(time.Now().Add(writeLimit)) // a writer without deadlines has none to set
	if _, s.err = s.w.Write([]byte(text)); s.err == nil {
		s.err = s.rc.Flush()
	}
}
