package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Times of a failing service.
const (
	comeBack  = 1                // seconds, in retry-after
	hangFor   = 12 * time.Second // longer than any client waits
	limitLast = 5 * time.Second  // until a usage limit resets
)

// weather is a proxy in front of a fake that makes requests fail as planned.
type weather struct {
	service place // or "model"
	pass    http.Handler
	web     *http.Server
	url     string
	note    func(format string, args ...any) // called for every failure

	mu     sync.Mutex
	storms []manner // due, one for each request
	always manner   // of all requests; empty: none
	met    map[manner]int
	last   []window // after each failed request; see troubles
}

const (
	model   place = "model"
	objects place = "objects"
)

func newWeather(service place, behind string, note func(string, ...any)) (*weather, error) {
	to, err := url.Parse(behind)
	if err != nil {
		return nil, fmt.Errorf("put weather before %s: %w", service, err)
	}
	ln, err := listen()
	if err != nil {
		return nil, fmt.Errorf("put weather before %s: %w", service, err)
	}
	quiet := log.New(io.Discard, "", 0)
	proxy := &httputil.ReverseProxy{ErrorLog: quiet, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		if service == objects {
			r.Out.Host = r.In.Host // which is signed
		}
	}}
	w := &weather{service: service, pass: proxy, url: "http://" + ln.Addr().String(), note: note, met: map[manner]int{}}
	w.web = &http.Server{Handler: w, ErrorLog: quiet, ReadHeaderTimeout: time.Minute}
	go func() { _ = w.web.Serve(ln) }()
	return w, nil
}

func (w *weather) close() { _ = w.web.Close() }

// brew makes the next request fail.
func (w *weather) brew(m manner) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.storms = append(w.storms, m)
}

// storm makes all requests fail for a while.
func (w *weather) storm(ctx context.Context, m manner, lasts time.Duration) {
	w.mu.Lock()
	w.always = m
	w.mu.Unlock()
	pause(ctx, lasts)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.always = ""
}

// clear lets all further requests pass.
func (w *weather) clear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.storms = nil
}

// failed returns the number of failed requests by manner.
func (w *weather) failed() map[manner]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.met)
}

// next takes the first storm that is due for a request. An answer is lost only where that matters: of what has said
// something to people.
func (w *weather) next(r *http.Request) (manner, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.always != "" {
		w.hit(w.always)
		return w.always, true
	}
	i := slices.IndexFunc(w.storms, func(m manner) bool { return m != lost || w.speaks(r) })
	if i < 0 {
		return "", false
	}
	m := w.storms[i]
	w.storms = slices.Delete(w.storms, i, i+1)
	w.hit(m)
	return m, true
}

// hit counts a failed request. w.mu is held.
func (w *weather) hit(m manner) {
	w.met[m]++
	now := time.Now()
	w.last = append(w.last, window{now, now.Add(troubled)})
}

// troubled is how long a failed request may delay the starts of runs: the model's failures slow down the whole fleet.
const troubled = time.Minute

// troubles returns when failed requests may have delayed runs.
func (w *weather) troubles() []window {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.last)
}

// speaks reports whether a request posts something.
func (w *weather) speaks(r *http.Request) bool {
	switch w.service {
	case inSlack:
		return strings.HasSuffix(r.URL.Path, "/chat.postMessage")
	case inGitHub:
		return r.Method == http.MethodPost
	}
	return true
}

func (w *weather) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	m, bad := w.next(r)
	if !bad {
		w.pass.ServeHTTP(rw, r)
		return
	}
	w.note("fault: %s: %s for %s %s", w.service, m, r.Method, r.URL.Path)
	switch m {
	case timeout:
		// Read the body, because a client that is still writing does not notice a missing response.
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-r.Context().Done():
		case <-time.After(hangFor):
		}
		panic(http.ErrAbortHandler)
	case reset:
		panic(http.ErrAbortHandler)
	case lost:
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		w.pass.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	case exhausted:
		rw.Header().Set("Anthropic-Ratelimit-Unified-Status", "rejected")
		rw.Header().Set("Anthropic-Ratelimit-Unified-Reset", strconv.FormatInt(time.Now().Add(limitLast).Unix(), 10))
		rw.Header().Set("Retry-After", strconv.Itoa(int(limitLast.Seconds())))
		w.refuse(rw, http.StatusTooManyRequests)
	case tooMany:
		rw.Header().Set("Retry-After", strconv.Itoa(comeBack))
		w.refuse(rw, http.StatusTooManyRequests)
	default:
		status, _ := strconv.Atoi(string(m))
		w.refuse(rw, status)
	}
}

// refuse answers with an error in the words of the service.
func (w *weather) refuse(rw http.ResponseWriter, status int) {
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(status)
	switch {
	case w.service == inSlack && status == http.StatusTooManyRequests:
		_, _ = io.WriteString(rw, `{"ok":false,"error":"ratelimited"}`)
	case w.service == inSlack:
		_, _ = io.WriteString(rw, `{"ok":false,"error":"internal_error"}`)
	case w.service == model:
		_, _ = io.WriteString(rw, `{"type":"error","error":{"type":"api_error","message":"chaos"}}`)
	default:
		_, _ = io.WriteString(rw, `{"message":"chaos"}`)
	}
}
