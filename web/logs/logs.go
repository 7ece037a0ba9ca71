// Package logs serves the logs of runs: from this machine's disk, from the worker that has the file, or from what the
// worker saved in the store when the run ended.
//
// It follows no link out of a log directory, and hands out logs to other machines only with the fleet token.
//
// Workers send logs over HTTP, not through Redis as replies to inquiries. There, a log of 80 MB needs a round trip for
// each piece, Redis writes all pieces to its append-only file and sends them to its replicas, and who reads delays
// everybody else.
package logs

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/web/auth"
	"github.com/errand-fleet/errand/web/internal/respond"
)

// Reader finds and sends logs. Create one with New and close it.
type Reader struct {
	desk  *desk.Desk
	store *store.Store
	dir   string // the logs of this machine's runs; empty if it has none
	log   *slog.Logger

	token  string // of the fleet; empty: other workers are not asked
	host   string // this machine
	client *http.Client
}

// New returns a reader for the logs in dir and on the workers that accept the fleet token. Both may be empty.
func New(desk *desk.Desk, st *store.Store, dir, token string, log *slog.Logger) (*Reader, error) {
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
	id, err := l.desk.Find(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	name, kind := variant(r)
	if name == tasks.RawLog && people.VisitorOf(r.Context()).Role < policy.Viewer {
		return &people.RoleError{Sentence: "Log in to read the raw log."}
	}
	at, err := l.find(r.Context(), query{id, name, r.Method, r.Header})
	if err != nil {
		return err
	}
	if at.into != "" {
		to := url.URL{Path: "/api/tasks/" + at.into + "/log", RawQuery: r.URL.RawQuery}
		http.Redirect(w, r, to.String(), http.StatusFound)
		return nil
	}
	defer at.Close()
	w.Header().Set("Content-Type", kind)
	switch {
	case at.remote != nil:
		err = forward(w, at.remote)
	case at.file != nil:
		http.ServeContent(w, r, "", at.modified, at.file)
	default:
		_, err = io.Copy(w, at)
	}
	if err != nil {
		if r.Context().Err() == nil {
			l.log.Warn("send log", "run", id, "err", err)
		}
		panic(http.ErrAbortHandler) // so that a truncated log does not look complete
	}
	return nil
}

// Read reads up to n bytes of the readable log of a run: those before an offset, or the last ones if before is 0. It
// also returns the offset of the first one. The log of an absorbed task is that of the other task's run.
func (l *Reader) Read(ctx context.Context, id string, before int64, n int) (text []byte, from int64, err error) {
	ask := fmt.Sprintf("bytes=-%d", n)
	if before > 0 {
		ask = fmt.Sprintf("bytes=%d-%d", max(0, before-int64(n)), before-1)
	}
	at, err := l.find(ctx, query{id, tasks.PeopleLog, http.MethodGet, http.Header{"Range": {ask}}})
	if err != nil {
		return nil, 0, err
	}
	if at.into != "" {
		return l.Read(ctx, at.into, before, n)
	}
	defer at.Close()
	switch {
	case at.file != nil:
		from, err = at.file.Seek(max(0, min(at.size, cmp.Or(before, at.size))-int64(n)), io.SeekStart)
	case at.remote != nil && at.remote.StatusCode == http.StatusRequestedRangeNotSatisfiable: // the log is shorter
		return nil, 0, nil
	case at.remote != nil && at.remote.StatusCode == http.StatusPartialContent:
		_, err = fmt.Sscanf(at.remote.Header.Get("Content-Range"), "bytes %d-", &from)
	}
	end := tail{from: from, most: n}
	if err == nil {
		_, err = io.Copy(&end, io.LimitReader(at, cmp.Or(before, math.MaxInt64)-from))
	}
	if err != nil && ctx.Err() == nil {
		l.log.Warn("read log", "run", id, "err", err)
		err = respond.Error(http.StatusBadGateway, "Interrupted", "The log could not be read to its end. Try again.")
	}
	return end.kept, end.from, err
}

// tail keeps the end of what is written to it.
type tail struct {
	kept []byte
	from int64 // the offset of the first one
	most int   // bytes
}

func (t *tail) Write(b []byte) (int, error) {
	t.kept = append(t.kept, b...)
	if over := len(t.kept) - t.most; over > 0 {
		t.kept, t.from = append(t.kept[:0], t.kept[over:]...), t.from+int64(over)
	}
	return len(b), nil
}

// query is a request for a log. The header has the range, if not all of the log is wanted.
type query struct {
	id, name string
	method   string // GET or HEAD
	header   http.Header
}

// found is a log where it was found. The caller closes it, unless into is set.
type found struct {
	io.ReadCloser
	into   string         // the task whose run absorbed this one and has the log
	remote *http.Response // of the worker that has it

	file     *os.File // on this machine
	size     int64
	modified time.Time
}

// find finds the log of the latest run, or else what is left of it.
func (l *Reader) find(ctx context.Context, q query) (at found, err error) {
	local, err := open(l.dir, q.id+"."+q.name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.log.Warn("open log", "run", q.id, "err", err)
	}
	defer func() {
		if at.file == nil {
			_ = local.file.Close() // which may be nil
		}
	}()
	s, err := l.desk.Status(ctx, q.id)
	switch {
	case s.Into != "":
		return found{into: s.Into}, nil
	case err != nil && !people.VisitorOf(ctx).Has(policy.See): // whether they may see it is unknown
		return found{}, err
	case local.file != nil && (err != nil || !local.modified.Before(s.Started)):
		return local, nil
	case err != nil:
		return found{}, err
	}
	if resp := l.remote(ctx, q, s.Worker); resp != nil { //nolint:bodyclose // the caller closes it
		return found{ReadCloser: resp.Body, remote: resp}, nil
	}
	saved, err := l.saved(ctx, q)
	if err == nil {
		return found{ReadCloser: saved}, nil
	}
	if !errors.Is(err, store.ErrNotFound) {
		l.log.Warn("read saved log", "run", q.id, "err", err)
	}
	switch {
	case local.file != nil: // of an earlier run; the latest ran elsewhere and its log is not available
		return local, nil
	case s.Worker == "":
		return found{}, respond.Error(http.StatusNotFound, "No log", "The task has not run, so it has no log.")
	}
	return found{}, respond.Error(http.StatusNotFound, "No log here",
		fmt.Sprintf("The log is on the machine of worker %s, as %s.%s in its log directory. That machine cannot be "+
			"reached, and the store has no copy.", s.Worker, q.id, q.name))
}

// saved returns what the runs of a task saved in the store.
func (l *Reader) saved(ctx context.Context, q query) (io.ReadCloser, error) {
	parts, err := l.store.Log(ctx, q.id, q.name)
	if err != nil {
		return nil, err
	}
	all := make([]io.Reader, len(parts))
	for i, p := range parts {
		all[i] = bytes.NewReader(p.Data)
		if z, err := gzip.NewReader(bytes.NewReader(p.Data)); err == nil { // saved by an earlier version
			all[i] = z
		}
	}
	return io.NopCloser(io.MultiReader(all...)), nil
}

// variant returns which of a task's logs a request is for: the readable one or, with ?raw=1, the CLI's own lines.
func variant(r *http.Request) (name, kind string) {
	if raw := r.URL.Query().Get("raw"); raw != "" && raw != "0" {
		return tasks.RawLog, "application/x-ndjson"
	}
	return tasks.PeopleLog, "text/plain; charset=utf-8"
}

// open opens a regular file of a log directory, and follows no link out of it.
func open(dir, name string) (found, error) {
	if dir == "" {
		return found{}, fs.ErrNotExist
	}
	f, err := os.OpenInRoot(dir, name)
	if err != nil {
		return found{}, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrNotExist
	}
	if err != nil {
		_ = f.Close()
		return found{}, err
	}
	return found{ReadCloser: f, file: f, size: info.Size(), modified: info.ModTime()}, nil
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
		id := r.PathValue("id")
		if !tasks.ValidID(id) {
			http.Error(w, "no task has such an ID", http.StatusBadRequest)
			return
		}
		name, kind := variant(r)
		f, err := open(dir, id+"."+name)
		if err != nil {
			http.Error(w, "no such log here", http.StatusNotFound)
			return
		}
		defer f.Close()
		w.Header().Set("Content-Type", kind)
		http.ServeContent(w, r, "", f.modified, f.file)
	})
	return mux
}

// Limits of a log that comes from a worker.
const (
	remoteDial = 2 * time.Second
	remoteHead = 5 * time.Second // until the response begins
	remoteTime = 5 * time.Minute // in total
)

// newClient returns the client for workers. It uses no proxy and follows no redirects.
func newClient() *http.Client {
	return &http.Client{
		Timeout: remoteTime, Transport: &http.Transport{
			DialContext: (&net.Dialer{Timeout: remoteDial}).DialContext, TLSHandshakeTimeout: remoteDial,
			ResponseHeaderTimeout: remoteHead, DisableCompression: true, IdleConnTimeout: time.Minute,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// remote requests a log from the worker that ran the task last, or from another worker on the same machine, which may
// use the same log directory. It returns nil if no worker has the log.
func (l *Reader) remote(ctx context.Context, q query, ran string) *http.Response {
	if l.token == "" || ran == "" {
		return nil
	}
	workers, err := l.store.Workers.List(ctx)
	if err != nil {
		l.log.Warn("list workers", "run", q.id, "err", err)
		return nil
	}
	for _, worker := range l.candidates(workers, ran) {
		resp, err := l.request(ctx, q, worker)
		if err != nil {
			if ctx.Err() == nil {
				l.log.Warn("request log from worker", "run", q.id, "worker", worker.ID, "err", err)
			}
			continue
		}
		switch resp.StatusCode {
		case http.StatusOK, http.StatusPartialContent, http.StatusRequestedRangeNotSatisfiable:
			return resp
		case http.StatusNotFound:
		default:
			l.log.Warn("request log from worker", "run", q.id, "worker", worker.ID, "status", resp.StatusCode)
		}
		_ = resp.Body.Close()
	}
	return nil
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
func (l *Reader) request(ctx context.Context, q query, from store.Worker) (*http.Response, error) {
	address := strings.TrimRight(from.URL, "/") + "/logs/" + q.id
	if q.name == tasks.RawLog {
		address += "?raw=1"
	}
	req, err := http.NewRequestWithContext(ctx, q.method, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+l.token)
	for _, name := range []string{"Range", "If-Range"} {
		if v := q.header.Get(name); v != "" {
			req.Header.Set(name, v)
		}
	}
	return l.client.Do(req)
}

// forward copies a worker's response.
func forward(w http.ResponseWriter, resp *http.Response) error {
	for _, name := range []string{"Content-Type", "Content-Length", "Content-Range", "Accept-Ranges", "Last-Modified"} {
		if v := resp.Header.Get(name); v != "" {
			w.Header().Set(name, v)
		}
	}
	w.WriteHeader(resp.StatusCode)
	_, err := io.Copy(w, resp.Body)
	return err
}
