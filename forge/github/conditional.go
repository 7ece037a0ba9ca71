package github

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"sync"
)

// Bounds of the answers that conditional keeps. A poll repeats a few requests for each repository.
const (
	maxKept     = 64 << 20 // bytes of all of them
	maxKeptOnce = 1 << 20  // of one
)

// conditional is a transport for one credential that asks GitHub again only for what has changed. Answers that nothing has
// changed do not count against the rate limit, says GitHub's page "Best practices for using the REST API". It is safe for
// concurrent use.
type conditional struct {
	base http.RoundTripper

	mu   sync.Mutex
	kept map[string]keptAnswer // by URL and Accept
	size int                   // bytes
}

type keptAnswer struct {
	header http.Header
	body   []byte
}

// RoundTrip sends a request, and returns the kept answer if GitHub says that it holds.
func (c *conditional) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet {
		return c.base.RoundTrip(req)
	}
	key := req.URL.String() + " " + req.Header.Get("Accept")
	c.mu.Lock()
	old, known := c.kept[key]
	c.mu.Unlock()
	if known {
		req = req.Clone(req.Context())
		req.Header.Set("If-None-Match", old.header.Get("ETag"))
	}
	res, err := c.base.RoundTrip(req)
	if err != nil || res.StatusCode != http.StatusNotModified && (res.StatusCode != http.StatusOK || res.Header.Get("ETag") == "") {
		return res, err
	}
	if res.StatusCode == http.StatusNotModified {
		_ = res.Body.Close()
		header := maps.Clone(old.header)
		maps.Copy(header, res.Header) // with the rate limit of now
		res.StatusCode, res.Status, res.Header = http.StatusOK, "200 OK", header
		res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(old.body)), int64(len(old.body))
		return res, nil
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxKeptOnce+1))
	if err != nil {
		_ = res.Body.Close()
		return nil, err
	}
	rest := res.Body
	res.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), rest), rest}
	if len(body) <= maxKeptOnce {
		c.keep(key, keptAnswer{res.Header.Clone(), body})
	}
	return res, nil
}

// keep keeps an answer, and forgets all others if they are too many: the next poll asks for them again.
func (c *conditional) keep(key string, a keptAnswer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.size += len(a.body) - len(c.kept[key].body)
	if c.kept == nil || c.size > maxKept {
		c.kept, c.size = map[string]keptAnswer{}, len(a.body)
	}
	c.kept[key] = a
}
