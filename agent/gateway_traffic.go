package agent

import (
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// API is what the gateway of a run saw of its traffic with the model: what the CLI does not tell. A call is a request for an answer; the
// CLI repeats one that failed.
type API struct {
	Calls     int               `json:"calls"`
	Usage     Usage             `json:"usage"`                // of all calls, as the answers gave it; of one that was cut, as far as it got
	Status    int               `json:"status,omitempty"`     // of the latest call; 0 when the model could not be reached
	Errors    map[int]int       `json:"errors,omitempty"`     // calls that failed, by status
	Problem   string            `json:"problem,omitempty"`    // why the model could not be reached, the latest time
	RetryAt   time.Time         `json:"retry_at,omitzero"`    // when the latest call that failed may be repeated (retry-after); zero: unknown
	Limits    map[string]string `json:"limits,omitempty"`     // anthropic-ratelimit-* of the latest call that had any, by the rest of the name
	FirstByte time.Duration     `json:"first_byte,omitempty"` // of the latest answer: from the question to its first byte
}

// explain adds why the model could not be reached to an error that says no more than that. A nil API has nothing to add.
func (a *API) explain(e *Error) {
	if a != nil && e.Class == ClassOverloaded && a.Calls > 0 && a.Status == 0 {
		e.Message += " (" + a.Problem + ")"
	}
}

// traffic collects an API. Safe for concurrent use: sub-agents ask at the same time.
type traffic struct {
	mu  sync.Mutex
	api API
}

func (t *traffic) copy() *API {
	t.mu.Lock()
	defer t.mu.Unlock()
	api := t.api
	api.Errors, api.Limits = maps.Clone(api.Errors), maps.Clone(api.Limits)
	return &api
}

func (t *traffic) asked() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.api.Calls++
}

func (t *traffic) answered(res *http.Response, now time.Time) {
	limits := rateLimits(res.Header)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.api.Status = res.StatusCode
	if len(limits) > 0 {
		t.api.Limits = limits
	}
	if res.StatusCode >= http.StatusBadRequest {
		t.failed(res.StatusCode)
		t.api.RetryAt = retryAfter(res.Header, now)
	}
}

func (t *traffic) unreachable(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed(0)
	t.api.Status, t.api.RetryAt, t.api.Problem = 0, time.Time{}, clip(err.Error(), 300)
}

// failed counts. The caller holds mu.
func (t *traffic) failed(status int) {
	if t.api.Errors == nil {
		t.api.Errors = map[int]int{}
	}
	t.api.Errors[status]++
}

func (t *traffic) begun(after time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.api.FirstByte = after
}

func (t *traffic) used(u Usage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.api.Usage = t.api.Usage.plus(u)
}

const limitPrefix = "Anthropic-Ratelimit-"

func rateLimits(h http.Header) map[string]string {
	limits := map[string]string{}
	for name := range h {
		if rest, ok := strings.CutPrefix(name, limitPrefix); ok {
			limits[strings.ToLower(rest)] = h.Get(name)
		}
	}
	return limits
}

// retryAfter reads retry-after, which is seconds or a date (RFC 9110 §10.2.3).
func retryAfter(h http.Header, now time.Time) time.Time {
	value := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return now.Add(time.Duration(seconds) * time.Second)
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return time.Time{}
	}
	return at
}

// observer notes what passes between a gateway and the model.
type observer struct {
	next http.RoundTripper
	seen *traffic
	note func(error) // why the model could not be reached
}

func (o observer) RoundTrip(req *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(req.URL.Path, "/messages") { // to count tokens is no call
		return o.next.RoundTrip(req)
	}
	start := time.Now()
	o.seen.asked()
	res, err := o.next.RoundTrip(req)
	switch {
	case err == nil:
		o.seen.answered(res, time.Now())
		res.Body = newMeter(res, func() { o.seen.begun(time.Since(start)) }, o.seen.used)
	case req.Context().Err() == nil: // else the CLI took its question back, or the run is over
		o.seen.unreachable(err)
		o.note(err)
	}
	return res, err
}
