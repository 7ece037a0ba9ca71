package intake

import (
	"bytes"
	"errors"
	"net/http"
	"time"
)

const (
	// MaxEvent is the largest event that is accepted, in bytes. It holds two of GitHub's longest texts.
	MaxEvent = 1 << 20
	// bodyLimit is how long the body of a request may take to arrive.
	bodyLimit = 10 * time.Second
	// firstBuffer is allocated at once for a body that announces at least as much; the rest is allocated as it arrives.
	firstBuffer = 16 << 10
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
	if err != nil {
		return nil, http.StatusBadRequest
	}
	return all.Bytes(), http.StatusOK
}
