package web

import (
	"bytes"
	"maps"
	"net/http"
	"time"
)

// logPage is how much of a log is on a page, in bytes.
const logPage = 32 << 10

// excerpt is a http.ResponseWriter that keeps a page of a log: the end of what was written before a moment, or of a range of bytes. An answer
// that is no log, such as that there is none, it passes on.
type excerpt struct {
	w      http.ResponseWriter
	header http.Header
	passed bool

	until      time.Time // zero: no such bound
	begin, end int64     // the range; end 0: all

	clock logClock
	over  bool // what comes is later than until
	at    int64
	kept  []byte
}

func (e *excerpt) Header() http.Header { return e.header }

// WriteHeader tells the range that was asked for from a whole log and from a refusal. A log that has become shorter than the range is none.
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
	for line := range bytes.Lines(b) { // the last may go on in the next b; its beginning has the time
		if e.over = e.over || !e.until.IsZero() && e.clock.read(line).After(e.until); e.over {
			break
		}
		at := e.at
		e.at += int64(len(line))
		if e.end > 0 {
			line = line[min(max(e.begin-at, 0), int64(len(line))):]
			line = line[:max(0, int64(len(line))-max(e.at-e.end, 0))]
		}
		if e.kept = append(e.kept, line...); len(e.kept) > 2*logPage {
			e.kept = append(e.kept[:0], e.kept[len(e.kept)-logPage:]...)
		}
	}
	return len(b), nil
}

// text is what was kept, from the beginning of a line on, and where in the log it begins.
func (e *excerpt) text() (text string, from int64) {
	end := e.at
	if e.end > 0 {
		end = min(end, e.end)
	}
	kept := e.kept[max(0, len(e.kept)-logPage):]
	if from = end - int64(len(kept)); from > 0 {
		if _, rest, _ := bytes.Cut(kept, []byte{'\n'}); len(rest) > 0 { // else it is one long line
			kept = rest
		}
	}
	return string(kept), end - int64(len(kept))
}

// logClock tells from a log for people when its lines were written: they have the time of day, and the head of each run has the date.
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
