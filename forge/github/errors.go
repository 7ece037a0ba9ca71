package github

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/forge"
)

// limitPause is how long to wait when GitHub does not say how long a rate limit lasts.
const limitPause = time.Minute

// RetryAfter reports whether err is one of GitHub's rate limits, and how long to wait. go-github v60 recognizes only some of them: every 429
// and a 403 with only Retry-After are ordinary errors to it.
func RetryAfter(err error) (time.Duration, bool) {
	if e, ok := errors.AsType[*github.RateLimitError](err); ok {
		return until(e.Rate.Reset.Time), true
	}
	if e, ok := errors.AsType[*github.AbuseRateLimitError](err); ok {
		if e.RetryAfter == nil {
			return limitPause, true
		}
		return max(*e.RetryAfter, time.Second), true // go-github itself refuses all calls until then
	}
	code, header, message := response(err)
	if code == http.StatusUnprocessableEntity && strings.Contains(err.Error(), "submitted too quickly") {
		return limitPause, true // a content limit; GitHub reports it in errors, not in message
	}
	if code != http.StatusTooManyRequests && code != http.StatusForbidden {
		return 0, false
	}
	seconds, numErr := strconv.Atoi(header.Get("Retry-After"))
	switch {
	case numErr == nil:
		return max(time.Duration(seconds)*time.Second, time.Second), true
	case header.Get("X-RateLimit-Remaining") == "0":
		// Every response has the reset time, which may be an hour away, so use it only if the limit is exhausted.
		reset, _ := strconv.ParseInt(header.Get("X-RateLimit-Reset"), 10, 64)
		return until(time.Unix(reset, 0)), true
	case code == http.StatusTooManyRequests, strings.Contains(message, "secondary rate limit"):
		return limitPause, true
	}
	return 0, false // an ordinary 403
}

// until returns the time left until t, at least a second; limitPause if t is missing.
func until(t time.Time) time.Duration {
	if t.Unix() <= 0 {
		return limitPause
	}
	return max(time.Until(t), time.Second)
}

// response returns GitHub's response behind an error; the code is 0 if there is none.
func response(err error) (code int, header http.Header, message string) {
	if e, ok := errors.AsType[*github.ErrorResponse](err); ok && e.Response != nil {
		return e.Response.StatusCode, e.Response.Header, e.Message
	}
	return 0, nil, ""
}

// StatusCode returns the HTTP status behind an error, or 0.
func StatusCode(err error) int {
	code, _, _ := response(err)
	return code
}

// Permanent reports whether GitHub would refuse the same call again: the object is gone, access is denied, or the request is invalid.
func Permanent(err error) bool {
	_, limited := RetryAfter(err)
	return !limited && slices.Contains([]int{
		http.StatusForbidden, http.StatusNotFound, http.StatusGone, http.StatusUnprocessableEntity, http.StatusUnavailableForLegalReasons,
	}, StatusCode(err))
}

// RateLimit turns a rate limit into a *forge.LimitError, and adds what failed to any other error.
func (f *Forge) RateLimit(what string, err error) error {
	if wait, ok := RetryAfter(err); ok {
		return fmt.Errorf("%s: %w", what, &forge.LimitError{At: f.cfg.Now().Add(wait), Why: "GitHub's rate limit"})
	}
	return fmt.Errorf("%s: %w", what, err)
}

// Explain is RateLimit for calls on behalf of people: a permanent failure becomes a *forge.RefusedError that tells them what to do.
func (f *Forge) Explain(what string, err error) error {
	switch {
	case StatusCode(err) == http.StatusUnauthorized:
		return &forge.RefusedError{Sentence: "GitHub does not accept errand's credentials. An operator has to renew them (" + what + ")."}
	case Permanent(err):
		return &forge.RefusedError{Sentence: "GitHub did not let errand " + what + ": it does not exist, or errand has no access to it."}
	}
	return f.RateLimit(what, err)
}
