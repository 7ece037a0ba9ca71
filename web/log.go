package web

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// taskLog sends a run's log as far as it has been written: from this disk, or from the worker that has it, or what its worker kept in the
// store at the end of the run. What is on this disk can be read without Redis, and after it has forgotten the task.
func (h *Handler) taskLog(w http.ResponseWriter, r *http.Request) {
	id, ok := h.id(w, r)
	if !ok {
		return
	}
	name, kind := logName(r)
	file, err := openLog(h.cfg.LogDir, id+"."+name)
	if err == nil {
		defer file.Close()
	} else if !errors.Is(err, fs.ErrNotExist) {
		h.log.Warn("open log", "run", id, "err", err)
	}
	s, err := h.cfg.Desk.Status(r.Context(), id)
	switch {
	case s.Into != "": // its log is that of the run it was taken up in
		http.Redirect(w, r, (&url.URL{Path: "/api/tasks/" + s.Into + "/log", RawQuery: r.URL.RawQuery}).String(), http.StatusFound)
	case file != nil && (err != nil || !file.modified.Before(s.Started)):
		file.serve(w, r, kind)
	case err != nil:
		h.refuse(w, r, err)
	case h.remoteLog(w, r, s), h.keptLog(w, r, s, name, kind):
	case file != nil: // of a run before the latest, which was elsewhere and left nothing that can be had
		file.serve(w, r, kind)
	case s.Worker == "":
		h.fail(w, r, problem{http.StatusNotFound, "No log", "The task has not been run, so it has no log."})
	default:
		detail := fmt.Sprintf("The log is on the machine of worker %s, as %s among its logs. That machine cannot be asked, and nothing was kept of it.", s.Worker, id+"."+name)
		h.fail(w, r, problem{http.StatusNotFound, "No log here", detail})
	}
}

// keptLog sends what the runs of a task left in the store; false when that is nothing.
func (h *Handler) keptLog(w http.ResponseWriter, r *http.Request, s tasks.Status, name, kind string) bool {
	parts, err := h.cfg.Store.Log(r.Context(), s.Task.ID, name)
	if err != nil {
		if !errors.Is(err, store.ErrNotFound) {
			h.log.Warn("read kept log", "run", s.Task.ID, "err", err)
		}
		return false
	}
	w.Header().Set("Content-Type", kind)
	for _, p := range parts {
		z, err := gzip.NewReader(bytes.NewReader(p.Data))
		if err == nil {
			_, err = io.Copy(w, z) //nolint:gosec // a worker of ours packed it, and bounded it before
		}
		if err != nil {
			h.log.Warn("send kept log", "run", s.Task.ID, "err", err)
			panic(http.ErrAbortHandler) // so that what is cut off does not look whole
		}
	}
	return true
}
