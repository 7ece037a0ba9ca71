package agent

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/errand-fleet/errand/agent/internal/redact"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Bounds of what the gateway of a run holds of questions. The API itself takes no more than maxQuestion.
const (
	maxQuestion  = 32 << 20
	maxQuestions = 2 * maxQuestion // of all at once; the others wait
	sendLimit    = time.Minute     // for a question to come in, over loopback
)

// What the gateway takes for the usage of a call while the model has not said it.
const (
	bytesPerToken   = 4
	tokensPerSecond = 80
)

// errSpent is why a call is refused, and the run ends.
var errSpent = errors.New("the run has spent what it may")

// question is what the gateway reads of a call. The body passes as it is.
type question struct {
	Model     string `json:"model"`
	MaxTokens int64  `json:"max_tokens"`
	Stream    bool   `json:"stream"`
}

// modelCall is one request for an answer, on its way.
type modelCall struct {
	question
	size  int64 // bytes of the question
	began time.Time

	traffic *traffic
	bill    bill
	model   string // that answers, as it says
	usd     float64
	first   time.Time // first byte of the answer
	asked   bool      // the model may have worked on it
	whole   bool      // the model has said what it used in all
}

type callKey struct{}

// ask passes a call to the model when the run may ask that model, and has something left to spend.
func (g *gateway) ask(w http.ResponseWriter, req *http.Request, proxy http.Handler) {
	size := req.ContentLength
	if size < 0 || size > maxQuestion {
		size = maxQuestion
	}
	if g.seen.room(req.Context(), size) != nil {
		panic(http.ErrAbortHandler) // the CLI has taken its question back
	}
	defer g.seen.release(size)
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(sendLimit))
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxQuestion))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		apiError(w, http.StatusRequestEntityTooLarge, "request_too_large", "the question is larger than the model's API takes")
		return
	}
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	c := &modelCall{traffic: &g.seen, size: int64(len(body)), began: time.Now()}
	// A field that was there twice might mean one thing here and another to the model.
	if json.Unmarshal(body, &c.question, jsontext.AllowInvalidUTF8(true)) != nil {
		apiError(w, http.StatusBadRequest, "invalid_request_error", "the question is not the JSON that the model's API takes")
		return
	}
	if !g.allows(c.Model) {
		g.refuseModel(w, c.Model)
		return
	}
	if _, known := priceOf(c.Model); !known && g.seen.once("price "+c.Model) {
		g.note("the price of model %q is not known: its calls count as those of the dearest one that is", redact.Clip(c.Model, 100))
	}
	req.Body, req.ContentLength, req.TransferEncoding = io.NopCloser(bytes.NewReader(body)), c.size, nil
	if req.URL.Path != messagesPath { // to count tokens costs nothing
		proxy.ServeHTTP(w, req)
		return
	}
	err = c.start(req.Context())
	if errors.Is(err, errSpent) {
		g.overspend()
		apiError(w, http.StatusPaymentRequired, "billing_error", "this run has spent the maximum that it was given")
		return
	}
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer c.end()
	proxy.ServeHTTP(w, req.WithContext(context.WithValue(req.Context(), callKey{}, c)))
}

func (g *gateway) refuseModel(w http.ResponseWriter, name string) {
	name = redact.Clip(name, 100)
	if g.seen.once("model " + name) {
		g.note("the gateway refuses model %q: it is none of this run's; `options: models` in errand.yaml allows further ones", name)
	}
	apiError(w, http.StatusNotFound, "not_found_error", "model: "+name+" is none of the models of this run")
}

// start waits until the run can pay for a call besides those under way. While calls cost no more than estimated, at most one exceeds the
// maximum. Its error is errSpent or that of ctx.
func (c *modelCall) start(ctx context.Context) error {
	t, estimate := c.traffic, c.estimate()
	return t.wait(ctx, func() (bool, error) {
		switch {
		case t.max > 0 && t.api.CostUSD >= t.max:
			return false, errSpent
		case t.max > 0 && t.calls > 0 && t.api.CostUSD+t.held+estimate > t.max:
			return false, nil
		}
		t.calls++
		t.held += estimate
		return true, nil
	})
}

// estimate is what is reserved for the call: its question, all of it written to the cache at the highest price, and as long an answer as it
// allows. It is no upper bound: pictures, documents, shorter tokens and the model's own tools cost more.
func (c *modelCall) estimate() float64 {
	b := bill{Usage: Usage{CacheCreation: c.size / bytesPerToken, Output: max(c.MaxTokens, 0)}, Geo: "us"}
	b.Cache.Hour = b.CacheCreation
	p, _ := priceOf(c.Model)
	return p.cost(b)
}

// end settles a call. What was broken off has cost something nevertheless.
func (c *modelCall) end() {
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
			spoken := int64(time.Since(since).Seconds() * tokensPerSecond)
			rest.Output = max(rest.Output, min(spoken, max(c.MaxTokens, 0)))
		}
		c.add(rest, "")
	}
	t.calls--
	t.held -= c.estimate()
	t.wake()
}

// used notes what the model has said so far that the call has used. whole says that this is all.
func (c *modelCall) used(b bill, model string, whole bool) {
	c.traffic.mu.Lock()
	defer c.traffic.mu.Unlock()
	c.whole = c.whole || whole
	c.add(b, model)
}

// add settles what is new in a bill. The caller holds the traffic's mu.
func (c *modelCall) add(b bill, model string) {
	if model != "" {
		c.model = model
	}
	api := &c.traffic.api
	p, _ := priceOf(c.model, c.Model)
	api.Usage = api.Usage.plus(b.less(c.bill.Usage))
	usd := p.cost(b)
	api.CostUSD += usd - c.usd
	c.bill, c.usd = b, usd
}

// room waits until there is room for a question of that size, which release gives back.
func (t *traffic) room(ctx context.Context, size int64) error {
	return t.wait(ctx, func() (bool, error) {
		if t.questions > 0 && t.questions+size > maxQuestions {
			return false, nil
		}
		t.questions += size
		return true, nil
	})
}

func (t *traffic) release(size int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.questions -= size
	t.wake()
}

// wait calls try, which holds mu, now and each time that something was given back, until it is done or fails.
func (t *traffic) wait(ctx context.Context, try func() (done bool, err error)) error {
	for {
		t.mu.Lock()
		done, err := try()
		if done || err != nil {
			t.mu.Unlock()
			return err
		}
		if t.changed == nil {
			t.changed = make(chan struct{})
		}
		changed := t.changed
		t.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// wake tells those who wait. The caller holds mu.
func (t *traffic) wake() {
	if t.changed != nil {
		close(t.changed)
		t.changed = nil
	}
}
