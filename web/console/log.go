package console

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"strconv"

	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/web/internal/respond"
)

// logBytes is how much of a log one page shows.
const logBytes = 32 << 10

// logView is a page of a task's log.
type logView struct {
	ID, Title string
	history
}

// logPage shows a page of the readable log: its end, or the lines before an offset (?before=, in bytes).
func (c *Console) logPage(w http.ResponseWriter, r *http.Request) error {
	id, err := c.View.ID(r)
	if err != nil {
		return err
	}
	before, err := strconv.ParseInt(cmp.Or(r.URL.Query().Get("before"), "0"), 10, 64)
	if err != nil || before < 0 {
		return respond.BadQuery("before must be an offset in the log, a whole number.")
	}
	text, from, err := c.Logs.Read(r.Context(), id, before, logBytes)
	if err != nil {
		return err
	}
	if _, rest, _ := bytes.Cut(text, []byte{'\n'}); from > 0 && len(rest) > 0 { // else it is one long line
		text, from = rest, from+int64(len(text)-len(rest))
	}
	v := logView{ID: id, Title: display.TaskID(id), history: history{Past: true}}
	if s, err := c.View.Desk.Status(r.Context(), id); err == nil { // Redis may be away
		v.Title = s.Task.Title()
	}
	if len(text) > 0 {
		v.Entries = []*entry{{Kind: "log", Text: display.Text(string(text))}}
	}
	if from > 0 {
		v.Older = fmt.Sprintf("/tasks/%s/log?before=%d", id, from)
	}
	return c.Out.Page(w, r, http.StatusOK, "log", v)
}
