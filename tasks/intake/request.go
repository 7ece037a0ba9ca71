package intake

import (
	"bytes"
	"errors"
	"net/http"
	"time"
)

const (
	// bodyLimit is how long the body of a request may take to arrive.
	bodyLimit = 10 * time.Second
	// firstBuffer is allocated at once for a body that announces at least as much; the rest is allocated as it arrives.
	firstBuffer = 16 << 10
)

// ReadBody reads a request's body of at most limit bytes. The status is 200, or what to answer instead.
func ReadBody(w http.ResponseWriter, r *http.Request, limit int64) (body []byte, status int) {
	// The sender is not authenticated yet, so bound how long the body may take. A server that cannot set a deadline has one already.
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

// ClockSkew returns how far now is ahead of the Date header of a response, in whole seconds; false if there is no such header.
func ClockSkew(h http.Header, now time.Time) (skew time.Duration, ok bool) {
	at, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return 0, false
	}
	return now.Sub(at).Round(time.Second), true
}
