package gateway

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/errand-fleet/errand/agent/cloud"
	"github.com/errand-fleet/errand/agent/internal/redact"
)

// Bounds of the requests that a gateway holds in memory. The API itself accepts at most maxQuestion.
const (
	maxQuestion  = 32 << 20
	maxQuestions = 2 * maxQuestion // of all together; further ones wait
	sendLimit    = time.Minute     // for a question to arrive over loopback
)

// The assumed usage of a call for which the model has not reported any.
const (
	bytesPerToken   = 4
	tokensPerSecond = 80
)

// ErrSpent is the cause of a run's end when a call is refused.
var ErrSpent = errors.New("the run has spent its maximum")

// question is the part of a request that the gateway reads. The body passes unchanged.
type question struct {
	Model     string   `json:"model"`
	MaxTokens int64    `json:"max_tokens"`
	Stream    bool     `json:"stream"`
	Betas     []string `json:"anthropic_beta"` // Bedrock's form of the header
}

// call is one request for an answer while it is under way.
type call struct {
	question
	size  int64 // bytes of the question
	began time.Time

	traffic *traffic
	lease   *lease
	bill    Bill
	model   string // that answers, as it says
	usd     float64
	first   time.Time // first byte of the answer
	asked   bool      // the model may have worked on it
	whole   bool      // the model has reported the total usage
}

type callKey struct{}

// ask passes a call to the model if the run may ask that model and has money left. path describes the request's path.
func (g *Gateway) ask(w http.ResponseWriter, req *http.Request, proxy http.Handler, path cloud.Question) {
	size := req.ContentLength
	if size < 0 || size > maxQuestion {
		size = maxQuestion
	}
	if g.seen.reserveQuestion(req.Context(), size) != nil {
		panic(http.ErrAbortHandler) // the CLI has withdrawn its question
	}
	defer g.seen.releaseQuestion(size)
	c, body := g.readCall(w, req, path)
	if c == nil {
		return
	}
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	req.Body, req.ContentLength, req.TransferEncoding = io.NopCloser(bytes.NewReader(body)), c.size, nil
	if path.Free {
		proxy.ServeHTTP(w, req)
		return
	}
	err := c.reserve(req.Context())
	if errors.Is(err, ErrSpent) {
		g.overspend()
		apiError(w, http.StatusPaymentRequired, "billing_error", "this run has reached its maximum cost")
		return
	}
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer c.settle()
	proxy.ServeHTTP(w, req.WithContext(context.WithValue(req.Context(), callKey{}, c)))
}

// readCall reads a question. It answers the request itself and returns nil if the question must not pass.
func (g *Gateway) readCall(w http.ResponseWriter, req *http.Request, path cloud.Question) (*call, []byte) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(sendLimit))
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxQuestion))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		apiError(w, http.StatusRequestEntityTooLarge, "request_too_large",
			"the request is larger than the model's API accepts")
		return nil, nil
	}
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	c := &call{traffic: &g.seen, lease: g.lease, size: int64(len(body)), began: time.Now()}
	// Duplicate fields are an error: gateway and model could each read another one.
	if json.Unmarshal(body, &c.question, jsontext.AllowInvalidUTF8(true)) != nil {
		apiError(w, http.StatusBadRequest, "invalid_request_error",
			"the request is not the JSON that the model's API accepts")
		return nil, nil
	}
	if what := redact.Clip(fetches(body), 100); what != "" {
		if g.seen.noteOnce("fetch") {
			g.note("the gateway refuses a question with %s: the model's API would fetch an address for the run", what)
		}
		apiError(w, http.StatusBadRequest, "invalid_request_error", what+" is refused by the gateway of this run")
		return nil, nil
	}
	if path.Model != "" {
		c.Model, c.Stream = path.Model, path.Streamed
	}
	if i := slices.IndexFunc(c.Betas, func(beta string) bool { return !slices.Contains(betas, beta) }); i >= 0 {
		apiError(w, http.StatusBadRequest, "invalid_request_error",
			"anthropic_beta: "+redact.Clip(c.Betas[i], 100)+" is unknown to the gateway of this run")
		return nil, nil
	}
	name := redact.Clip(c.Model, 100)
	if !g.allows(c.Model) {
		if g.seen.noteOnce("model " + name) {
			g.note("the gateway refuses model %q: this run may not use it; `options: models` in "+
				"errand.yaml allows further models", name)
		}
		apiError(w, http.StatusNotFound, "not_found_error", "model: "+name+" is not one of the models of this run")
		return nil, nil
	}
	if _, known := g.seen.prices.Of(c.Model); !known && g.seen.noteOnce("price "+c.Model) {
		g.note("the price of model %q is unknown: its calls are charged at the highest list price; "+
			"`prices` in errand.yaml can name it", name)
	}
	return c, body
}

// apiError answers in the form of the model's API, which the CLI understands.
func apiError(w http.ResponseWriter, status int, kind, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(apiErrorBody(kind, message))
}

func apiErrorBody(kind, message string) []byte {
	body, err := json.Marshal(map[string]any{
		"type": "error", "error": map[string]string{"type": kind, "message": message},
	})
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return body
}

// reserve waits until the run can pay for the call in addition to those under way. As long as calls cost no more than
// estimated, at most one call exceeds the maximum. The error is ErrSpent or that of ctx.
func (c *call) reserve(ctx context.Context) error {
	t, estimate := c.traffic, c.estimate()
	return t.wait(ctx, func() (bool, error) {
		switch {
		case t.max > 0 && t.api.CostUSD >= t.max:
			return false, ErrSpent
		case t.max > 0 && t.calls > 0 && t.api.CostUSD+t.held+estimate > t.max:
			return false, nil
		}
		t.calls++
		t.held += estimate
		return true, nil
	})
}

// estimate returns the amount to reserve for the call: the whole question written to the cache at the highest price,
// and the longest answer that it allows. It is no upper bound: pictures, documents, shorter tokens and the model's own
// tools cost more.
func (c *call) estimate() float64 {
	b := Bill{Usage: Usage{CacheCreation: c.size / bytesPerToken, Output: max(c.MaxTokens, 0)}, Geo: "us"}
	b.Cache.Hour = b.CacheCreation
	p, _ := c.traffic.prices.Of(c.Model)
	return p.Cost(b)
}

// settle ends a call. A call that was broken off is charged with an estimate.
func (c *call) settle() {
	t := c.traffic
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.asked && !c.whole {
		rest := c.bill
		if rest.Input+rest.CacheRead+rest.CacheCreation == 0 {
			rest.Input = c.size / bytesPerToken
		}
		since := c.first
		if !c.Stream {
			since = c.began
		}
		if !since.IsZero() {
			written := int64(time.Since(since).Seconds() * tokensPerSecond)
			rest.Output = max(rest.Output, min(written, max(c.MaxTokens, 0)))
		}
		c.charge(rest, "")
	}
	t.calls--
	t.held -= c.estimate()
	t.wake()
}

// update charges what the model has reported so far. whole means that this is the total.
func (c *call) update(b Bill, model string, whole bool) {
	c.traffic.mu.Lock()
	defer c.traffic.mu.Unlock()
	c.whole = c.whole || whole
	c.charge(b, model)
}

// charge adds what is new in b to the run's total. The caller holds the traffic's mu.
func (c *call) charge(b Bill, model string) {
	if model != "" {
		c.model = model
	}
	api := &c.traffic.api
	names := []string{c.model, c.Model}
	if ModelID(c.model) == ModelID(c.Model) { // the name that was asked for may also say the region
		names = names[1:]
	}
	p, _ := c.traffic.prices.Of(names...)
	usd := p.Cost(b)
	api.Usage = api.Usage.Plus(b.Minus(c.bill.Usage))
	api.CostUSD += usd - c.usd
	c.bill, c.usd = b, usd
}

// Bounds of the part of a body that a meter keeps. Longer parts pass without being counted.
const (
	maxEvent = 64 << 10 // of an event's line; message_start and message_delta have about 1 KB
	maxBody  = 4 << 20  // of an answer that is not streamed
)

// meter reads the usage of a call from the answer that passes through it, without holding anything back. It belongs to
// the goroutine that reads the body.
type meter struct {
	io.ReadCloser
	first func()                                 // called at the first byte
	used  func(b Bill, model string, whole bool) // called with the usage so far and the model, if known; whole: total

	limit  int    // maximum length of line; 0: the answer has no usage
	stream bool   // the body is events, otherwise one JSON object
	framed bool   // the events are in frames: see frames.go; otherwise they are server-sent events
	skip   int64  // bytes of a frame that are left out
	line   []byte // the current line or frame so far, or the object
	long   bool   // the line was longer than limit
	event  string // the event of the line, if it has usage
	begun  bool   // there was an event that can be part of an answer
	sum    Bill   // the usage so far
}

func newMeter(res *http.Response, first func(), used func(Bill, string, bool)) *meter {
	m := &meter{ReadCloser: res.Body, first: first, used: used}
	switch kind, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";"); {
	case res.StatusCode != http.StatusOK, res.Header.Get("Content-Encoding") != "": // an error, or an odd encoding
	case kind == "text/event-stream":
		m.stream, m.limit = true, maxEvent
	case kind == frameType:
		m.stream, m.framed, m.limit = true, true, maxEvent
	case kind == "application/json":
		m.limit = maxBody
	}
	return m
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.ReadCloser.Read(p)
	if n > 0 && m.first != nil {
		m.first()
		m.first = nil
	}
	switch {
	case m.framed:
		m.frames(p[:n])
	case m.stream:
		m.lines(p[:n])
	default:
		m.keep(p[:n])
		if err == io.EOF {
			m.count(m.line)
		}
	}
	return n, err
}

func (m *meter) keep(b []byte) {
	m.long = m.long || len(m.line)+len(b) > m.limit
	if !m.long {
		m.line = append(m.line, b...)
	}
}

func (m *meter) lines(b []byte) {
	for {
		head, rest, ended := bytes.Cut(b, []byte{'\n'})
		m.keep(head)
		if !ended {
			return
		}
		if name, ok := bytes.CutPrefix(m.line, []byte("event:")); ok {
			m.expect(string(bytes.TrimSpace(name)))
		} else if data, ok := bytes.CutPrefix(m.line, []byte("data:")); ok && m.event != "" {
			m.count(data)
		}
		m.line, m.long, b = m.line[:0], false, rest
	}
}

// expect notes which event comes, if it has usage. An error instead of an answer costs nothing.
func (m *meter) expect(event string) {
	if m.event = event; event != "message_start" && event != lastUsage {
		m.event = ""
	}
	if event == "error" && !m.begun {
		m.used(Bill{}, "", true)
	}
	m.begun = m.begun || event != "ping"
}

// lastUsage is the event that completes the usage of a streamed call.
const lastUsage = "message_delta"

// count reads the usage in an event or an answer. The API puts it into the message or beside it, and reports the sum so
// far each time.
func (m *meter) count(data []byte) {
	var v struct {
		Message struct {
			Model string `json:"model"`
			Usage Bill   `json:"usage"`
		} `json:"message"`
		Model string `json:"model"`
		Usage *Bill  `json:"usage"`
	}
	if m.long || json.Unmarshal(data, &v, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)) != nil {
		return
	}
	m.sum = m.sum.most(v.Message.Usage)
	if v.Usage != nil {
		m.sum = m.sum.most(*v.Usage)
	}
	m.used(m.sum, cmp.Or(v.Message.Model, v.Model), v.Usage != nil && (!m.stream || m.event == lastUsage))
}
