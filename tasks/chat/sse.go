package chat

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
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx would hold the events back
	w.WriteHeader(http.StatusOK)
	return &sse{w: w, rc: http.NewResponseController(w)}
}

// data sends one event; id, if any, is where to go on from at /api/tasks/{id}/events.
func (s *sse) data(id string, event any) {
	b, err := json.Marshal(event)
	if err != nil {
		s.err = err
		return
	}
	if id != "" {
		id = "id: " + id + "\n"
	}
	s.write(fmt.Sprintf("%sdata: %s\n\n", id, b))
}

// done ends the stream as the clients of many chats expect it.
func (s *sse) done() { s.write("data: [DONE]\n\n") }

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

// problem is an answer from before the stream, as RFC 9457 has it.
type problem struct {
	Status int    `json:"status"`
	Title  string `json:"title"`
	Detail string `json:"detail"`
}

func (p *problem) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the reader may be gone
}
