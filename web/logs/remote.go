package logs

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
