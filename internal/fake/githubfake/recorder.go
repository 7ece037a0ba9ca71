package githubfake

import (
	"bytes"
	"maps"
	"net/http"
)

// recorder keeps an answer until it may be seen.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (rec *recorder) Header() http.Header { return rec.header }

// WriteHeader keeps the first status, as net/http does.
func (rec *recorder) WriteHeader(status int) {
	if rec.status == 0 {
		rec.status = status
	}
}

func (rec *recorder) Write(p []byte) (int, error) {
	rec.WriteHeader(http.StatusOK)
	return rec.body.Write(p)
}

func (rec *recorder) copyTo(w http.ResponseWriter) {
	maps.Copy(w.Header(), rec.header)
	rec.WriteHeader(http.StatusOK)
	w.WriteHeader(rec.status)
	_, _ = w.Write(rec.body.Bytes())
}
