package intake

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"
)

const (
	// bodyLimit is how long the body of a request may take to arrive.
	bodyLimit = 10 * time.Second
	// firstBuffer is allocated at once for a body that announces at least as much; the rest is allocated as it arrives.
	firstBuffer = 16 << 10
	// largeBody is how much of a body is read without a slot of [LargeBodies], and slotWait how long it waits for one.
	largeBody = 1 << 20
	slotWait  = time.Second
)

// ReadBody reads a request's body of at most limit bytes. The status is 200, or what to answer instead.
func ReadBody(w http.ResponseWriter, r *http.Request, limit int64) (body []byte, status int) {
	// The sender is not authenticated yet, so bound how long the body may take. A server that cannot set a deadline has
	// one already.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyLimit))
	var all bytes.Buffer
	all.Grow(int(min(max(r.ContentLength, 0), firstBuffer)) + bytes.MinRead)
	_, err := all.ReadFrom(http.MaxBytesReader(w, r.Body, limit))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, http.StatusRequestEntityTooLarge
	}
	if errors.Is(err, errNoSlot) {
		return nil, http.StatusServiceUnavailable
	}
	if err != nil {
		return nil, http.StatusBadRequest
	}
	return all.Bytes(), http.StatusOK
}

// LargeBodies bounds how many large bodies are in memory at a time, because anybody may send them. Its capacity is how
// many.
type LargeBodies chan struct{}

var errNoSlot = errors.New("too many large bodies are being read")

// Bound makes the body of a request wait for a slot before more than 1 MiB of it is read; without one, [ReadBody]
// answers 503. release ends the use of the body, and must be called.
func (l LargeBodies) Bound(r *http.Request) (release func()) {
	b := &boundBody{ReadCloser: r.Body, slots: l, done: r.Context().Done(), left: largeBody}
	r.Body = b
	return b.release
}

// boundBody is a body that needs a slot for what is left of it after the first bytes.
type boundBody struct {
	io.ReadCloser
	slots LargeBodies
	done  <-chan struct{} // the sender has gone
	left  int             // bytes that may be read without a slot
	holds bool            // a slot
}

// Read reads at most what may be read without a slot, or waits for one. The error is errNoSlot if none was free in
// time.
func (b *boundBody) Read(p []byte) (n int, err error) {
	if b.holds {
		return b.ReadCloser.Read(p)
	}
	if b.left > 0 {
		n, err = b.ReadCloser.Read(p[:min(len(p), b.left)])
		b.left -= n
		return n, err
	}
	select {
	case b.slots <- struct{}{}:
		b.holds = true
		return b.ReadCloser.Read(p)
	case <-time.After(slotWait):
	case <-b.done:
	}
	return 0, errNoSlot
}

func (b *boundBody) release() {
	if b.holds {
		<-b.slots
	}
}
