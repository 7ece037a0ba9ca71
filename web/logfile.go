package web

import (
	"io/fs"
	"net/http"
	"os"
	"time"

	"github.com/errand-fleet/errand/tasks"
)

// logFile is one of a run's two logs, as far as it has been written.
type logFile struct {
	*os.File
	modified time.Time
}

// logName is which of a task's logs a request is for: the one for people, or with ?raw=1 the CLI's own lines.
func logName(r *http.Request) (name, kind string) {
	if raw := r.URL.Query().Get("raw"); raw != "" && raw != "0" {
		return tasks.RawLog, "application/x-ndjson"
	}
	return tasks.PeopleLog, "text/plain; charset=utf-8"
}

// openLog opens a file of a log directory, and follows no link out of it.
func openLog(dir, file string) (*logFile, error) {
	if dir == "" {
		return nil, fs.ErrNotExist
	}
	f, err := os.OpenInRoot(dir, file)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrNotExist
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return &logFile{f, info.ModTime()}, nil
}

// serve sends the log, or the range of it that was asked for.
func (f *logFile) serve(w http.ResponseWriter, r *http.Request, kind string) {
	w.Header().Set("Content-Type", kind)
	http.ServeContent(w, r, "", f.modified, f)
}

// LogServer hands out the logs in a directory, as GET /logs/{id} and with ?raw=1, to whoever has the fleet's token: the front doors of
// other machines. With an empty token nobody is let in.
func LogServer(dir, token string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /logs/{id}", func(w http.ResponseWriter, r *http.Request) {
		setHeaders(w.Header())
		if !ShowsToken(r, token) {
			http.Error(w, "the fleet's token is needed", http.StatusUnauthorized)
			return
		}
		id := r.PathValue("id")
		if !tasks.ValidID(id) {
			http.Error(w, "a task's ID looks like 1700000000000000-chat-x", http.StatusBadRequest)
			return
		}
		name, kind := logName(r)
		f, err := openLog(dir, id+"."+name)
		if err != nil {
			http.Error(w, "no such log here", http.StatusNotFound)
			return
		}
		defer f.Close()
		f.serve(w, r, kind)
	})
	return mux
}
