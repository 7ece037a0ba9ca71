package agent

import (
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/errand-fleet/errand/agent/internal/redact"
)

// API is what the gateway of a run saw of its traffic with the model: what the CLI does not tell. A call is a request for an answer; the
// CLI repeats one that failed.
type API struct {
	Calls     int               `json:"calls"`
	Usage     Usage             `json:"usage"`                // of all calls, as the answers gave it; of one that was cut, estimated
	CostUSD   float64           `json:"cost_usd"`             // of all calls, at list price
	Status    int               `json:"status,omitempty"`     // of the latest call that ended; 0: it could not reach the model, or none has ended
	Errors    map[int]int       `json:"errors,omitempty"`     // calls that failed, by status
	Problem   string            `json:"problem,omitempty"`    // why the model could not be reached, the latest time
	RetryAt   time.Time         `json:"retry_at,omitzero"`    // when the latest call, which failed, may be repeated (retry-after); zero: unknown
	Limits    map[string]string `json:"limits,omitempty"`     // anthropic-ratelimit-* of the latest call that had any, by the rest of the name
	FirstByte time.Duration     `json:"first_byte,omitempty"` // of the latest answer: from the question to its first byte
}

// trouble is what was wrong with the latest call, for people: where the model is, what it said and what can be done. Empty: nothing that is known.
func (g *gateway) trouble() string {
	api := g.Seen()
	switch {
	case api == nil:
		return ""
	case api.unreachable():
		return fmt.Sprintf("The model at %s cannot be reached: %s. Look at ANTHROPIC_BASE_URL, proxy, firewall and DNS.", g.host, api.reason())
	case api.Status >= http.StatusBadRequest:
		return fmt.Sprintf("The model at %s answered %s.", g.host, strings.TrimSpace(fmt.Sprint(api.Status, " ", statusText(api.Status))))
	}
	return ""
}

// unreachable reports whether the latest call that ended did not reach the model. A call that is not answered yet has not ended.
func (a *API) unreachable() bool { return a.Status == 0 && a.Problem != "" }

// reason is Problem without the method and the address that Go puts before it.
func (a *API) reason() string {
	_, rest, found := strings.Cut(a.Problem, "\": ")
	if !found {
		return a.Problem
	}
	return rest
}

func statusText(status int) string {
	if status == statusOverloaded {
		return "Overloaded"
	}
	return http.StatusText(status)
}

// statusOverloaded is the API's own.
const statusOverloaded = 529

// explain adds why the model could not be reached to an error that says no more than that. A nil API has nothing to add.
func (a *API) explain(e *Error) {
	if a != nil && e.Class == ClassOverloaded && a.unreachable() {
		e.Message += " (" + a.Problem + ")"
	}
}

// limit is what the latest call says of the account's usage limit, in the words in which the CLI tells it; nil: nothing.
func (a *API) limit() *wireRateLimit {
	if a.Status != http.StatusTooManyRequests {
		return nil
	}
	reset, err := strconv.ParseFloat(a.Limits["unified-reset"], 64)
	if err != nil {
		return nil
	}
	return &wireRateLimit{Status: a.Limits["unified-status"], ResetsAt: reset}
}

// class is that of the latest call that ended; empty when it was answered, or none has ended.
func (a *API) class() Class {
	if a.unreachable() {
		return ClassOverloaded
	}
	return statusClass(a.Status)
}

// Throttled reports whether the model, asked for the last time, wanted fewer requests or could not be reached.
func (a *API) Throttled() bool {
	c := a.class()
	return c == ClassOverloaded || c == ClassRateLimit
}

// Refused reports whether the model, asked for the last time, did not take the credential, or wanted it paid for.
func (a *API) Refused() bool {
	return a.Status == http.StatusUnauthorized || a.Status == http.StatusPaymentRequired || a.Status == http.StatusForbidden
}

// traffic collects an API, and keeps what the calls under way hold. Safe for concurrent use: sub-agents ask at the same time.
type traffic struct {
	max float64 // US dollars that the run may spend; 0: any

	mu        sync.Mutex
	api       API
	noted     []string      // what was noted once
	calls     int           // under way
	held      float64       // what they are estimated to cost, in US dollars
	questions int64         // bytes of questions that are held
	changed   chan struct{} // closed when any of these has become less; nil: nobody waits
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
	t.api.RetryAt = time.Time{}
	if res.StatusCode >= http.StatusBadRequest {
		t.failed(res.StatusCode)
		t.api.RetryAt = retryAfter(res.Header, now)
	}
}

func (t *traffic) unreachable(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed(0)
	t.api.Status, t.api.RetryAt, t.api.Problem = 0, time.Time{}, redact.Clip(err.Error(), 300)
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
	c, ok := req.Context().Value(callKey{}).(*modelCall)
	if !ok { // to count tokens is no call
		return o.next.RoundTrip(req)
	}
	o.seen.asked()
	res, err := o.next.RoundTrip(req)
	switch {
	case err == nil:
		o.seen.answered(res, time.Now())
		c.asked = res.StatusCode == http.StatusOK
		res.Body = newMeter(res, func() { c.first = time.Now(); o.seen.begun(c.first.Sub(c.began)) }, c.used)
	case req.Context().Err() == nil:
		o.seen.unreachable(err)
		o.note(err)
	default: // the CLI took its question back, or the run is over
		c.asked = true
	}
	return res, err
}
