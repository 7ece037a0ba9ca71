package web

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"time"
)

// taskLog sends a run's log as far as it has been written: the one for people, or with ?raw=1 the CLI's own lines. Logs stay on the
// machine of the worker; one that is not here is on another.
func (h *Handler) taskLog(w http.ResponseWriter, r *http.Request) {
	id, ok := h.id(w, r)
	if !ok {
		return
	}
	name, kind := id+".log", "text/plain; charset=utf-8"
	if raw := r.URL.Query().Get("raw"); raw != "" && raw != "0" {
		name, kind = id+".ndjson", "application/x-ndjson"
	}
	f, modified, err := h.openLog(name)
	if err == nil {
		defer f.Close()
		w.Header().Set("Content-Type", kind)
		http.ServeContent(w, r, "", modified, f)
		return
	}
	if !errors.Is(err, fs.ErrNotExist) {
		h.log.Warn("open log", "run", id, "err", err)
	}
	// Only now the store: what is on this disk can be read without Redis, and after it has forgotten the task.
	s, ok := h.ask(w, r, h.cfg.Desk.Status)
	if !ok {
		return
	}
	if s.Into != "" { // its log is that of the run it was taken up in
		http.Redirect(w, r, (&url.URL{Path: "/api/tasks/" + s.Into + "/log", RawQuery: r.URL.RawQuery}).String(), http.StatusFound)
		return
	}
	detail := fmt.Sprintf("The log is on the machine of worker %s, as %s among its logs.", s.Worker, name)
	if s.Worker == "" {
		detail = "The task has not been run, so it has no log."
	}
	h.fail(w, r, problem{http.StatusNotFound, "No log here", detail})
}

// openLog opens a file of the log directory, and follows no link out of it.
func (h *Handler) openLog(name string) (f *os.File, modified time.Time, err error) {
	if h.cfg.LogDir == "" {
		return nil, time.Time{}, fs.ErrNotExist
	}
	f, err = os.OpenInRoot(h.cfg.LogDir, name)
	if err != nil {
		return nil, time.Time{}, err
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, time.Time{}, err
	}
	return f, info.ModTime(), nil
}
