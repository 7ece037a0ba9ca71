package github

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"sync"
)

// Bounds of the answers that are kept. A poll repeats a few requests for each repository.
const (
	maxAnswers     = 20_000
	maxKept        = 64 << 20 // bytes of all of them
	maxKeptOnce    = 1 << 20  // of the body of one
	answerOverhead = 512      // bytes that one needs besides its texts, about
)

type repeatedKey struct{}

// Repeated returns a context for requests that are made again and again, such as those of a poll: they are only
// for what has changed since the last time.
func Repeated(ctx context.Context) context.Context {
	return context.WithValue(ctx, repeatedKey{}, true)
}

// conditional is a transport for one credential that repeats requests of a [Repeated] context with a condition. Answers
// that nothing has changed do not count against the rate limit, says GitHub's page "Best practices for using the REST
// API". It is safe for concurrent use.
type conditional struct {
	base    http.RoundTripper
	answers *answers
}

// answers are what the transports of all credentials keep. It is safe for concurrent use.
type answers struct {
	mu   sync.Mutex
	kept map[answerKey]keptAnswer
	size int // bytes
}

// answerKey identifies a request. Another credential may see other things.
type answerKey struct {
	by          *conditional
	url, accept string
}

type keptAnswer struct {
	header http.Header
	body   []byte
}

// RoundTrip sends a request, and returns the kept answer if GitHub says that it holds.
func (c *conditional) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet || req.Context().Value(repeatedKey{}) == nil {
		return c.base.RoundTrip(req)
	}
	key := answerKey{c, req.URL.String(), req.Header.Get("Accept")}
	old, known := c.answers.find(key)
	if known {
		req = req.Clone(req.Context())
		req.Header.Set("If-None-Match", old.header.Get("ETag"))
	}
	res, err := c.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if known && res.StatusCode == http.StatusNotModified {
		_ = res.Body.Close()
		header := maps.Clone(old.header)
		maps.Copy(header, res.Header) // with the rate limit of now
		res.StatusCode, res.Status, res.Header = http.StatusOK, "200 OK", header
		res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(old.body)), int64(len(old.body))
		return res, nil
	}
	if res.StatusCode != http.StatusOK || res.Header.Get("ETag") == "" {
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
		c.answers.keep(key, keptAnswer{res.Header.Clone(), body})
	}
	return res, nil
}

func (a *answers) find(key answerKey) (answer keptAnswer, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	answer, ok = a.kept[key]
	return answer, ok
}

// keep keeps an answer, and forgets all others if they are too many: the next poll asks for them again.
func (a *answers) keep(key answerKey, answer keptAnswer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	size := answer.size(key)
	if old, known := a.kept[key]; known {
		a.size -= old.size(key)
	}
	if a.kept == nil || len(a.kept) >= maxAnswers || a.size+size > maxKept {
		a.kept, a.size = map[answerKey]keptAnswer{}, 0
	}
	a.kept[key] = answer
	a.size += size
}

// size returns about how many bytes an answer takes.
func (k keptAnswer) size(key answerKey) int {
	n := answerOverhead + len(key.url) + len(key.accept) + len(k.body)
	for name, values := range k.header {
		n += len(name)
		for _, value := range values {
			n += len(value)
		}
	}
	return n
}
