package gateway

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/errand-fleet/errand/agent/internal/redact"
)

// Usage counts tokens.
type Usage struct {
	Input         int64 `json:"input_tokens"`
	Output        int64 `json:"output_tokens"`
	CacheRead     int64 `json:"cache_read_input_tokens"`
	CacheCreation int64 `json:"cache_creation_input_tokens"`
}

// Plus returns the sum of u and v.
func (u Usage) Plus(v Usage) Usage {
	return Usage{u.Input + v.Input, u.Output + v.Output, u.CacheRead + v.CacheRead, u.CacheCreation + v.CacheCreation}
}

// Minus returns the difference of u and v.
func (u Usage) Minus(v Usage) Usage {
	return Usage{u.Input - v.Input, u.Output - v.Output, u.CacheRead - v.CacheRead, u.CacheCreation - v.CacheCreation}
}

// API is what the gateway of a run saw of its traffic with the model, which the CLI does not report. A call is a
// request for an answer; the CLI repeats calls that fail.
type API struct {
	Calls   int               `json:"calls"`
	Usage   Usage             `json:"usage"`             // of all calls; estimated for interrupted ones
	CostUSD float64           `json:"cost_usd"`          // of all calls, at list price or at Config.Prices
	Status  int               `json:"status,omitempty"`  // of the latest ended call; 0: no answer, or no call
	Errors  map[int]int       `json:"errors,omitempty"`  // number of failed calls by status
	Problem string            `json:"problem,omitempty"` // why the latest failure did not reach the model
	RetryAt time.Time         `json:"retry_at,omitzero"` // when the failed call may be repeated; zero: unknown
	Limits  map[string]string `json:"limits,omitempty"`  // latest anthropic-ratelimit-* headers, by suffix

	Credential string    `json:"credential,omitempty"` // name of the run's; empty: the only one
	FreeAt     time.Time `json:"free_at,omitzero"`     // of several: when one may serve the run that was refused
}

// Unreachable reports whether the latest call that ended did not reach the model.
func (a *API) Unreachable() bool { return a.Status == 0 && a.Problem != "" }

// Throttled reports whether the latest call was refused because the model was overloaded or limits requests, or did not
// reach it.
func (a *API) Throttled() bool {
	return a.Unreachable() || a.Status == http.StatusTooManyRequests || a.Status == http.StatusRequestTimeout ||
		a.Status >= 500
}

// Refused reports whether the latest call was refused because of the credential or for lack of payment.
func (a *API) Refused() bool {
	return a.Status == http.StatusUnauthorized || a.Status == http.StatusPaymentRequired ||
		a.Status == http.StatusForbidden
}

// UsageLimit returns what the latest call says about the account's usage limit: its status and when it resets, in Unix
// seconds. ok is false if it says nothing.
func (a *API) UsageLimit() (status string, resetsAt float64, ok bool) {
	if a.Status != http.StatusTooManyRequests {
		return "", 0, false
	}
	resetsAt, err := strconv.ParseFloat(a.Limits["unified-reset"], 64)
	return a.Limits["unified-status"], resetsAt, err == nil
}

// Trouble describes what was wrong with the latest call, and what to do about it. It is empty if nothing is known to be
// wrong.
func (g *Gateway) Trouble() string {
	api := g.Seen()
	if api == nil {
		return ""
	}
	host, check := g.upstream.url.Host, "ANTHROPIC_BASE_URL"
	if c := g.lease.key.Cloud; c != nil {
		host, check = c.Host(), "the region or endpoint of "+c.Name()
	}
	switch {
	case api.Unreachable():
		_, reason, found := strings.Cut(api.Problem, "\": ") // leave out the method and the URL
		if !found {
			reason = api.Problem
		}
		return fmt.Sprintf("The model at %s cannot be reached: %s. Check %s, proxy, firewall and DNS.",
			host, reason, check)
	case api.Status == 529: // the API's own
		return fmt.Sprintf("The model at %s answered 529 Overloaded.", host)
	case api.Status >= http.StatusBadRequest:
		return fmt.Sprintf("The model at %s answered %s.", host,
			strings.TrimSpace(fmt.Sprint(api.Status, " ", http.StatusText(api.Status))))
	}
	return ""
}

// traffic collects an API and the reservations of the calls under way. It is safe for concurrent use: sub-agents ask at
// the same time.
type traffic struct {
	prices PriceList // an operator's

	mu        sync.Mutex
	max       float64 // US dollars that the run may spend; 0: any amount
	api       API
	refusedAt time.Time // when a credential was refused the last time
	noted     []string
	calls     int           // under way
	held      float64       // their estimated cost in US dollars
	questions int64         // bytes of questions in memory
	changed   chan struct{} // closed when a reservation is released; nil: nothing waits
}

func (t *traffic) copy() *API {
	t.mu.Lock()
	defer t.mu.Unlock()
	api := t.api
	api.Errors, api.Limits = maps.Clone(api.Errors), maps.Clone(api.Limits)
	return &api
}

// maxNoted limits the notes about a run's requests, because a tool could cause a new note with each request.
const maxNoted = 20

// noteOnce reports whether a note is new and may be written.
func (t *traffic) noteOnce(note string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.noted) >= maxNoted || slices.Contains(t.noted, note) {
		return false
	}
	t.noted = append(t.noted, note)
	return true
}

// reserveQuestion waits until there is memory for a question. releaseQuestion gives it back.
func (t *traffic) reserveQuestion(ctx context.Context, size int64) error {
	return t.wait(ctx, func() (bool, error) {
		if t.questions > 0 && t.questions+size > maxQuestions {
			return false, nil
		}
		t.questions += size
		return true, nil
	})
}

func (t *traffic) releaseQuestion(size int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.questions -= size
	t.wake()
}

// wait calls try with mu held, again after each release, until it succeeds or fails.
func (t *traffic) wait(ctx context.Context, try func() (ok bool, err error)) error {
	for {
		t.mu.Lock()
		ok, err := try()
		if ok || err != nil {
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

// wake lets waiters try again. The caller holds mu.
func (t *traffic) wake() {
	if t.changed != nil {
		close(t.changed)
		t.changed = nil
	}
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
		t.countError(res.StatusCode)
		t.api.RetryAt = retryAfter(res.Header, now)
	}
}

// refused records when another credential may serve the run, whose own one was refused.
func (t *traffic) refused(freeAt time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.api.FreeAt, t.refusedAt = freeAt, time.Now()
}

// accepted forgets a refusal because of an answer to a call that began after it.
func (t *traffic) accepted(began time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if began.After(t.refusedAt) {
		t.api.FreeAt = time.Time{}
	}
}

// served reports whether the model has worked for the run.
func (t *traffic) served() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.api.Usage != Usage{}
}

func (t *traffic) unreachable(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.countError(0)
	t.api.Status, t.api.RetryAt, t.api.Problem = 0, time.Time{}, redact.Clip(err.Error(), 300)
}

// countError requires mu.
func (t *traffic) countError(status int) {
	if t.api.Errors == nil {
		t.api.Errors = map[int]int{}
	}
	t.api.Errors[status]++
}

func rateLimits(h http.Header) map[string]string {
	limits := map[string]string{}
	for name := range h {
		if rest, ok := strings.CutPrefix(name, "Anthropic-Ratelimit-"); ok {
			limits[strings.ToLower(rest)] = h.Get(name)
		}
	}
	return limits
}

// retryAfter parses Retry-After, which is a number of seconds or a date (RFC 9110 §10.2.3).
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

// observer is the transport of a gateway's proxy. It records the traffic.
type observer struct {
	next http.RoundTripper
	seen *traffic
	note func(format string, args ...any)
}

func (o observer) RoundTrip(req *http.Request) (*http.Response, error) {
	c, ok := req.Context().Value(callKey{}).(*call)
	if !ok { // counting tokens is not a call
		return o.next.RoundTrip(req)
	}
	o.seen.asked()
	res, err := o.next.RoundTrip(req)
	switch {
	case err == nil:
		o.seen.answered(res, time.Now())
		c.asked = res.StatusCode == http.StatusOK
		// With its length the asker would know the end of an answer before the call is charged, and could ask again.
		res.ContentLength = -1
		res.Header.Del("Content-Length")
		res.Body = newMeter(res, func() { c.first = time.Now() }, c.update)
	case req.Context().Err() == nil:
		o.seen.unreachable(err)
		o.note("the model cannot be reached: %v", err)
	default: // the CLI has withdrawn its question, or the run is over
		c.asked = true
	}
	return res, err
}
