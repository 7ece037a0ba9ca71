// Package logs serves the logs of runs: from this machine's disk, from the worker that has the file, or from what the
// worker saved in the store when the run ended.
//
// It follows no link out of a log directory, and hands out logs to other machines only with the fleet token.
package logs

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/web/auth"
	"github.com/errand-fleet/errand/web/internal/respond"
)

// Reader finds and sends logs. Create one with New and close it.
type Reader struct {
	desk  *tasks.Desk
	store *store.Store
	dir   string // the logs of this machine's runs; empty if it has none
	log   *slog.Logger

	token  string // of the fleet; empty: other workers are not asked
	host   string // this machine
	client *http.Client
}

// New returns a reader for the logs in dir and on the workers that accept the fleet token. Both may be empty.
func New(desk *tasks.Desk, st *store.Store, dir, token string, log *slog.Logger) (*Reader, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("web: %w", err)
	}
	return &Reader{desk: desk, store: st, dir: dir, log: log, token: token, host: host, client: newClient()}, nil
}

// Close closes idle connections to workers.
func (l *Reader) Close() { l.client.CloseIdleConnections() }

// Send sends the log of a run as far as it has been written. A log on this disk is sent even without Redis, and after
// Redis has forgotten the task.
func (l *Reader) Send(w http.ResponseWriter, r *http.Request) error {
	id, err := respond.TaskID(r)
	if err != nil {
		return err
	}
	name, kind := variant(r)
	visitor := tasks.VisitorOf(r.Context())
	if name == tasks.RawLog && visitor.Role < tasks.Viewer {
		return &tasks.RoleError{Sentence: "Log in to read the raw log."}
	}
	file, err := open(l.dir, id+"."+name)
	if err == nil {
		defer file.Close()
	} else if !errors.Is(err, fs.ErrNotExist) {
		l.log.Warn("open log", "run", id, "err", err)
	}
	s, err := l.desk.Status(r.Context(), id)
	switch {
	case s.Into != "": // absorbed: its log is that of the other task's run
		http.Redirect(w, r, (&url.URL{Path: "/api/tasks/" + s.Into + "/log", RawQuery: r.URL.RawQuery}).String(), http.StatusFound)
	case err != nil && !visitor.Has(tasks.Viewer): // whether they may see it is unknown
		return err
	case file != nil && (err != nil || !file.modified.Before(s.Started)):
		file.send(w, r, kind)
	case err != nil:
		return err
	case l.sendRemote(w, r, s), l.sendSaved(w, r, s, name, kind):
	case file != nil: // of an earlier run; the latest ran elsewhere and its log is not available
		file.send(w, r, kind)
	case s.Worker == "":
		return respond.Error(http.StatusNotFound, "No log", "The task has not run, so it has no log.")
	default:
		return respond.Error(http.StatusNotFound, "No log here",
			fmt.Sprintf("The log is on the machine of worker %s, as %s in its log directory. That machine cannot be reached, and the store has no copy.", s.Worker, id+"."+name))
	}
	return nil
}

// sendSaved sends what the runs of a task saved in the store. It returns false if nothing was saved.
func (l *Reader) sendSaved(w http.ResponseWriter, r *http.Request, s tasks.Status, name, kind string) bool {
	parts, err := l.store.Log(r.Context(), s.Task.ID, name)
	if err != nil {
		if !errors.Is(err, store.ErrNotFound) {
			l.log.Warn("read saved log", "run", s.Task.ID, "err", err)
		}
		return false
	}
	w.Header().Set("Content-Type", kind)
	for _, p := range parts {
		z, err := gzip.NewReader(bytes.NewReader(p.Data))
		if err == nil {
			_, err = io.Copy(w, z) //nolint:gosec // a worker of the fleet compressed it, and limited its size before
		}
		if err != nil {
			l.log.Warn("send saved log", "run", s.Task.ID, "err", err)
			panic(http.ErrAbortHandler) // so that a truncated log does not look complete
		}
	}
	return true
}

// file is one of a run's two logs.
type file struct {
	*os.File
	modified time.Time
}

// variant returns which of a task's logs a request is for: the readable one or, with ?raw=1, the CLI's own lines.
func variant(r *http.Request) (name, kind string) {
	if raw := r.URL.Query().Get("raw"); raw != "" && raw != "0" {
		return tasks.RawLog, "application/x-ndjson"
	}
	return tasks.PeopleLog, "text/plain; charset=utf-8"
}

// open opens a regular file of a log directory, and follows no link out of it.
func open(dir, name string) (*file, error) {
	if dir == "" {
		return nil, fs.ErrNotExist
	}
	f, err := os.OpenInRoot(dir, name)
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
	return &file{f, info.ModTime()}, nil
}

// send sends the file, or the range of it that the request asks for.
func (f *file) send(w http.ResponseWriter, r *http.Request, kind string) {
	w.Header().Set("Content-Type", kind)
	http.ServeContent(w, r, "", f.modified, f)
}

// Server serves the logs in a directory as GET /logs/{id}, with ?raw=1 the raw ones, to the front doors of other
// machines, which know the fleet token. With an empty token every request is refused.
func Server(dir, token string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /logs/{id}", func(w http.ResponseWriter, r *http.Request) {
		respond.SetHeaders(w.Header())
		if !auth.BearerMatches(r, token) {
			http.Error(w, "the fleet token is required", http.StatusUnauthorized)
			return
		}
		id, err := respond.TaskID(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		name, kind := variant(r)
		f, err := open(dir, id+"."+name)
		if err != nil {
			http.Error(w, "no such log here", http.StatusNotFound)
			return
		}
		defer f.Close()
		f.send(w, r, kind)
	})
	return mux
}

// Limits of a log that comes from a worker.
const (
	remoteDial = 2 * time.Second
	remoteHead = 5 * time.Second // until the response begins
	remoteTime = 5 * time.Minute // in total
	remoteSize = 1 << 30         // bytes
)

// newClient returns the client for workers. It uses no proxy and follows no redirects.
func newClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext: (&net.Dialer{Timeout: remoteDial}).DialContext, TLSHandshakeTimeout: remoteDial, ResponseHeaderTimeout: remoteHead,
			DisableCompression: true, MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// sendRemote sends the log from the worker that ran the task last, or from another worker on the same machine, which
// may use the same log directory. It returns false if no worker has the log.
func (l *Reader) sendRemote(w http.ResponseWriter, r *http.Request, s tasks.Status) bool {
	if l.token == "" || s.Worker == "" {
		return false
	}
	workers, err := l.store.Workers.List(r.Context())
	if err != nil {
		l.log.Warn("list workers", "run", s.Task.ID, "err", err)
		return false
	}
	ctx, cancel := context.WithTimeout(r.Context(), remoteTime)
	defer cancel()
	for _, worker := range l.candidates(workers, s.Worker) {
		resp, err := l.request(ctx, r, worker, s.Task.ID)
		if err != nil {
			if r.Context().Err() == nil {
				l.log.Warn("request log from worker", "run", s.Task.ID, "worker", worker.ID, "err", err)
			}
			continue
		}
		switch resp.StatusCode {
		case http.StatusOK, http.StatusPartialContent, http.StatusRequestedRangeNotSatisfiable:
			forward(w, resp)
			return true
		case http.StatusNotFound:
		default:
			l.log.Warn("request log from worker", "run", s.Task.ID, "worker", worker.ID, "status", resp.StatusCode)
		}
		_ = resp.Body.Close()
	}
	return false
}

// candidates returns the workers that may have a log and can be reached, the likeliest first. A loopback address is
// reachable only from the worker's own machine.
func (l *Reader) candidates(workers []store.Worker, ran string) []store.Worker {
	var list []store.Worker
	for _, w := range workers {
		switch {
		case w.URL == "" || loopback(w.URL) && w.Host != l.host:
		case w.ID == ran:
			list = slices.Insert(list, 0, w)
		case strings.HasPrefix(ran, w.Host+"-"): // a worker's ID begins with its host
			list = append(list, w)
		}
	}
	return list
}

func loopback(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return true
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// request requests a log from a worker. The caller closes the body.
func (l *Reader) request(ctx context.Context, r *http.Request, from store.Worker, id string) (*http.Response, error) {
	address := strings.TrimRight(from.URL, "/") + "/logs/" + id
	if name, _ := variant(r); name == tasks.RawLog {
		address += "?raw=1"
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+l.token)
	for _, name := range []string{"Range", "If-Range", "If-Modified-Since"} {
		if v := r.Header.Get(name); v != "" {
			req.Header.Set(name, v)
		}
	}
	return l.client.Do(req) //nolint:gosec // workers publish their addresses in Redis, and the ID was validated
}

// forward copies a worker's response.
func forward(w http.ResponseWriter, resp *http.Response) {
	defer resp.Body.Close()
	for _, name := range []string{"Content-Type", "Content-Length", "Content-Range", "Accept-Ranges", "Last-Modified"} {
		if v := resp.Header.Get(name); v != "" {
			w.Header().Set(name, v)
		}
	}
	w.WriteHeader(resp.StatusCode)
	n, err := io.Copy(w, io.LimitReader(resp.Body, remoteSize))
	if err != nil || n == remoteSize {
		panic(http.ErrAbortHandler) // so that a truncated log does not look complete
	}
}
