package web

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// Bounds of a log that comes from a worker.
const (
	remoteDial = 2 * time.Second
	remoteHead = 5 * time.Second // until it begins to answer
	remoteTime = 5 * time.Minute // in all
	remoteSize = 1 << 30         // bytes
)

// newRemote is the client for workers. They are neighbours: no proxy stands between, and none of them sends us elsewhere.
func newRemote() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext: (&net.Dialer{Timeout: remoteDial}).DialContext, TLSHandshakeTimeout: remoteDial, ResponseHeaderTimeout: remoteHead,
			DisableCompression: true, MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// remoteLog passes on what the worker says that ran the task last, or one of the same machine, where a later one may have the same
// directory; false when none of them has the log.
func (h *Handler) remoteLog(w http.ResponseWriter, r *http.Request, s tasks.Status) bool {
	if h.cfg.FleetToken == "" || s.Worker == "" {
		return false
	}
	workers, err := h.cfg.Store.Workers(r.Context())
	if err != nil {
		h.log.Warn("list workers", "run", s.Task.ID, "err", err)
		return false
	}
	ctx, cancel := context.WithTimeout(r.Context(), remoteTime)
	defer cancel()
	for _, of := range h.holders(workers, s.Worker) {
		resp, err := h.askWorker(ctx, r, of, s.Task.ID)
		if err != nil {
			if r.Context().Err() == nil {
				h.log.Warn("ask worker for log", "run", s.Task.ID, "worker", of.ID, "err", err)
			}
			continue
		}
		switch resp.StatusCode {
		case http.StatusOK, http.StatusPartialContent, http.StatusRequestedRangeNotSatisfiable:
			pass(w, resp)
			return true
		case http.StatusNotFound:
		default:
			h.log.Warn("ask worker for log", "run", s.Task.ID, "worker", of.ID, "status", resp.StatusCode)
		}
		_ = resp.Body.Close()
	}
	return false
}

// holders are the workers that may have a log and can be asked, the likeliest first. An address that means "this machine" means it on
// the worker's machine alone.
func (h *Handler) holders(workers []store.Worker, ran string) []store.Worker {
	var list []store.Worker
	for _, w := range workers {
		switch {
		case w.URL == "" || loopback(w.URL) && w.Host != h.host:
		case w.ID == ran:
			list = slices.Insert(list, 0, w)
		case strings.HasPrefix(ran, w.Host+"-"): // see tasks.NewWorker
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

// askWorker begins to read a log. The caller closes the body.
func (h *Handler) askWorker(ctx context.Context, r *http.Request, of store.Worker, id string) (*http.Response, error) {
	address := strings.TrimRight(of.URL, "/") + "/logs/" + id
	if name, _ := logName(r); name == tasks.RawLog {
		address += "?raw=1"
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+h.cfg.FleetToken)
	for _, name := range []string{"Range", "If-Range", "If-Modified-Since"} {
		if v := r.Header.Get(name); v != "" {
			req.Header.Set(name, v)
		}
	}
	return h.remote.Do(req) //nolint:gosec // the address is a worker's own word, by way of our Redis, and the ID has the form of one
}

// pass hands an answer on, as it comes.
func pass(w http.ResponseWriter, resp *http.Response) {
	defer resp.Body.Close()
	for _, name := range []string{"Content-Type", "Content-Length", "Content-Range", "Accept-Ranges", "Last-Modified"} {
		if v := resp.Header.Get(name); v != "" {
			w.Header().Set(name, v)
		}
	}
	w.WriteHeader(resp.StatusCode)
	n, err := io.Copy(w, io.LimitReader(resp.Body, remoteSize))
	if err != nil || n == remoteSize {
		panic(http.ErrAbortHandler) // so that what is cut off does not look whole
	}
}
