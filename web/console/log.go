package console

import (
	"bytes"
	"maps"
	"net/http"
	"strconv"
	"time"

	"github.com/errand-fleet/errand/internal/legible"
	"github.com/errand-fleet/errand/web/internal/respond"
)

// logBytes is how much of a log one page shows.
const logBytes = 32 << 10

// logView is a page of a task's log. It continues the timeline where its events end.
type logView struct {
	ID string
	history
}

// logPage shows a page of the readable log: its end, or the lines until a time (?until=, in milliseconds), or those
// before an offset (?before=, in bytes).
func (c *Console) logPage(w http.ResponseWriter, r *http.Request) error {
	id, err := respond.TaskID(r)
	if err != nil {
		return err
	}
	before, err1 := parseOffset(r.URL.Query().Get("before"))
	until, err2 := parseOffset(r.URL.Query().Get("until"))
	if err1 != nil || err2 != nil {
		return respond.BadQuery("before must be an offset in the log and until a time in milliseconds, both whole numbers.")
	}
	part := &excerpt{w: w, header: http.Header{}}
	ask := r.Clone(r.Context())
	ask.URL.RawQuery, ask.Header = "", http.Header{"Accept": r.Header["Accept"]}
	if until > 0 {
		part.until = time.UnixMilli(until).UTC()
	}
	if before > 0 {
		part.begin, part.end = max(0, before-logBytes), before
		ask.Header.Set("Range", "bytes="+strconv.FormatInt(part.begin, 10)+"-"+strconv.FormatInt(before-1, 10))
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
		v.Older = "/tasks/" + id + "/log?before=" + strconv.FormatInt(from, 10)
	}
	return c.out.Page(w, http.StatusOK, "log", v)
}

// parseOffset parses a whole number; "" is 0.
func parseOffset(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return max(0, n), err
}

// excerpt is an http.ResponseWriter that keeps a page of a log: its end, or the end of the part before a time, or a
// range of bytes. It passes on a response that is not a log, such as a redirect.
type excerpt struct {
	w      http.ResponseWriter
	header http.Header
	passed bool

	until      time.Time // zero: no limit
	begin, end int64     // the range; end 0: all

	clock logClock
	over  bool // the rest is later than until
	at    int64
	kept  []byte
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
		e.over = true
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
	for line := range bytes.Lines(b) { // the last line may continue in the next b; its beginning has the time
		if e.over = e.over || !e.until.IsZero() && e.clock.read(line).After(e.until); e.over {
			break
		}
		at := e.at
		e.at += int64(len(line))
		if e.end > 0 {
			line = line[min(max(e.begin-at, 0), int64(len(line))):]
			line = line[:max(0, int64(len(line))-max(e.at-e.end, 0))]
		}
		if e.kept = append(e.kept, line...); len(e.kept) > 2*logBytes {
			e.kept = append(e.kept[:0], e.kept[len(e.kept)-logBytes:]...)
		}
	}
	return len(b), nil
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

// logClock reads the times of the lines of a log. Lines have the time of day, and the header of each run has the date.
type logClock struct{ now time.Time }

func (c *logClock) read(line []byte) time.Time {
	const clock = "15:04:05.000"
	if started, ok := bytes.CutPrefix(line, []byte("# started ")); ok {
		if t, err := time.Parse(time.RFC3339, string(bytes.TrimSpace(started))); err == nil {
			c.now = t.UTC()
		}
		return c.now
	}
	t, err := time.Parse(clock, string(line[:min(len(line), len(clock))]))
	if err != nil || c.now.IsZero() {
		return c.now
	}
	t = c.now.Truncate(24 * time.Hour).Add(t.Sub(t.Truncate(24 * time.Hour)))
	if t.Before(c.now.Add(-12 * time.Hour)) { // past midnight
		t = t.Add(24 * time.Hour)
	}
	c.now = t
	return t
}
