package web

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/errand-fleet/errand/internal/legible"
)

// logView is a page of a task's log: it goes on where the timeline's events end, and looks like one.
type logView struct {
	ID string
	history
}

// logPage shows a page of the log for people, wherever that is kept: its end, or what was written until a moment (?until=, in milliseconds),
// or what is before a place in it (?before=, in bytes).
func (h *Handler) logPage(w http.ResponseWriter, r *http.Request) {
	id, ok := h.id(w, r)
	if !ok {
		return
	}
	before, err1 := number(r.URL.Query().Get("before"))
	until, err2 := number(r.URL.Query().Get("until"))
	if err1 != nil || err2 != nil {
		h.fail(w, r, problem{http.StatusBadRequest, "Invalid query", "Before is a place in the log and until a moment, both whole numbers."})
		return
	}
	part := &excerpt{w: w, header: http.Header{}}
	ask := r.Clone(r.Context())
	ask.URL.RawQuery, ask.Header = "", http.Header{"Accept": r.Header["Accept"]}
	if until > 0 {
		part.until = time.UnixMilli(until).UTC()
	}
	if before > 0 {
		part.begin, part.end = max(0, before-logPage), before
		ask.Header.Set("Range", "bytes="+strconv.FormatInt(part.begin, 10)+"-"+strconv.FormatInt(before-1, 10))
	}
	if h.taskLog(part, ask); part.passed {
		return
	}
	text, from := part.text()
	v := logView{ID: id, history: history{Past: true}}
	if text != "" {
		v.Entries = []*entry{{Kind: "log", Text: legible.Text(strings.ToValidUTF8(text, "\uFFFD"))}}
	}
	if from > 0 {
		v.Older = "/tasks/" + id + "/log?before=" + strconv.FormatInt(from, 10)
	}
	h.page(w, http.StatusOK, "log", v)
}

// number reads a whole number that may be missing.
func number(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return max(0, n), err
}
