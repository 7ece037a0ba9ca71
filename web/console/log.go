package console

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"strconv"

	"github.com/errand-fleet/errand/internal/legible"
	"github.com/errand-fleet/errand/web/internal/respond"
)

// logBytes is how much of a log one page shows.
const logBytes = 32 << 10

// logView is a page of a task's log.
type logView struct {
	ID string
	history
}

// logPage shows a page of the readable log: its end, or the lines before an offset (?before=, in bytes).
func (c *Console) logPage(w http.ResponseWriter, r *http.Request) error {
	id, err := respond.TaskID(r)
	if err != nil {
		return err
	}
	before, err := strconv.ParseInt(cmp.Or(r.URL.Query().Get("before"), "0"), 10, 64)
	if err != nil || before < 0 {
		return respond.BadQuery("before must be an offset in the log, a whole number.")
	}
	part := &excerpt{w: w, header: http.Header{}, begin: max(0, before-logBytes), end: before}
	ask := r.Clone(r.Context())
	ask.URL.RawQuery, ask.Header = "", http.Header{"Accept": r.Header["Accept"]}
	if before > 0 {
		ask.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", part.begin, part.end-1))
	}
	if err := c.logs.Send(part, ask); err != nil || part.passed {
		return err
	}
	text, from := part.text()
	v := logView{ID: id, history: history{Past: true}}
	if text != "" {
		v.Entries = []*entry{{Kind: "log", Text: legible.Text(text)}}
	}
	if from > 0 {
		v.Older = fmt.Sprintf("/tasks/%s/log?before=%d", id, from)
	}
	return c.out.Page(w, http.StatusOK, "log", v)
}

// excerpt is an http.ResponseWriter that keeps a page of a log: its end, or a range of bytes. It passes on a response
// that is not a log, such as a redirect.
type excerpt struct {
	w      http.ResponseWriter
	header http.Header
	passed bool

	begin, end int64 // the range; end 0: all
	beyond     bool  // the log is shorter than the range
	at         int64
	kept       []byte
}

func (e *excerpt) Header() http.Header { return e.header }

// WriteHeader distinguishes the requested range from a whole log and from other responses. A log that is shorter than
// the range is empty.
func (e *excerpt) WriteHeader(status int) {
	switch status {
	case http.StatusOK:
	case http.StatusPartialContent:
		e.at = e.begin
	case http.StatusRequestedRangeNotSatisfiable:
		e.beyond = true
	default:
		maps.Copy(e.w.Header(), e.header)
		e.passed = true
		e.w.WriteHeader(status)
	}
}

func (e *excerpt) Write(b []byte) (int, error) {
	if e.passed {
		return e.w.Write(b)
	}
	n, at := int64(len(b)), e.at
	if e.beyond {
		return len(b), nil
	}
	e.at += n
	if e.end > 0 {
		within := func(offset int64) int64 { return min(max(offset-at, 0), n) }
		b = b[within(e.begin):within(e.end)]
	}
	if e.kept = append(e.kept, b...); len(e.kept) > 2*logBytes {
		e.kept = append(e.kept[:0], e.kept[len(e.kept)-logBytes:]...)
	}
	return int(n), nil
}

// text returns the kept part from the beginning of a line, and its offset in the log.
func (e *excerpt) text() (text string, from int64) {
	end := e.at
	if e.end > 0 {
		end = min(end, e.end)
	}
	kept := e.kept[max(0, len(e.kept)-logBytes):]
	if from = end - int64(len(kept)); from > 0 {
		if _, rest, _ := bytes.Cut(kept, []byte{'\n'}); len(rest) > 0 { // else it is one long line
			kept = rest
		}
	}
	return string(kept), end - int64(len(kept))
}
