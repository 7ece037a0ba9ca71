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

	"github.com/errand-fleet/errand/tasks"
)

// limitPause is how long GitHub wants to be left alone when it does not say for how long.
const limitPause = time.Minute

// retryAfter reports whether an error is one of GitHub's rate limits, and when to come back. go-github v60 tells only some of them
// from refusals: every 429 and a 403 with no more than Retry-After are plain errors to it.
func retryAfter(err error) (time.Duration, bool) {
	if e, ok := errors.AsType[*github.RateLimitError](err); ok {
		return until(e.Rate.Reset.Time), true
	}
	if e, ok := errors.AsType[*github.AbuseRateLimitError](err); ok {
		if e.RetryAfter == nil {
			return limitPause, true
		}
		return max(*e.RetryAfter, time.Second), true // the client refuses by itself until then, right or wrong
	}
	code, header, message := refusal(err)
	if code == http.StatusUnprocessableEntity && strings.Contains(err.Error(), "submitted too quickly") {
		return limitPause, true // too much content in too short a time; GitHub says so in errors, not in message
	}
	if code != http.StatusTooManyRequests && code != http.StatusForbidden {
		return 0, false
	}
	seconds, numErr := strconv.Atoi(header.Get("Retry-After"))
	switch {
	case numErr == nil:
		return max(time.Duration(seconds)*time.Second, time.Second), true
	case header.Get("X-RateLimit-Remaining") == "0":
		// Only then: the time of the reset stands in every answer, and may be an hour away.
		reset, _ := strconv.ParseInt(header.Get("X-RateLimit-Reset"), 10, 64)
		return until(time.Unix(reset, 0)), true
	case code == http.StatusTooManyRequests, strings.Contains(message, "secondary rate limit"):
		return limitPause, true
	}
	return 0, false // a 403 that is a refusal
}

// until is the time left, at least a second; of a time that is missing it is the usual pause.
func until(t time.Time) time.Duration {
	if t.Unix() <= 0 {
		return limitPause
	}
	return max(time.Until(t), time.Second)
}

// refusal is GitHub's answer behind an error; the code is 0 when there was none.
func refusal(err error) (code int, header http.Header, message string) {
	if e, ok := errors.AsType[*github.ErrorResponse](err); ok && e.Response != nil {
		return e.Response.StatusCode, e.Response.Header, e.Message
	}
	return 0, nil, ""
}

// status is the HTTP status behind an error, 0 when there was none.
func status(err error) int {
	code, _, _ := refusal(err)
	return code
}

// lasting reports whether GitHub would say the same again: the thing is gone, not allowed, or not as it should be.
func lasting(err error) bool {
	_, limited := retryAfter(err)
	return !limited && slices.Contains([]int{
		http.StatusForbidden, http.StatusNotFound, http.StatusGone, http.StatusUnprocessableEntity, http.StatusUnavailableForLegalReasons,
	}, status(err))
}

// later makes an error of what a report could not do. A rate limit becomes the time at which to try again.
func (s *Source) later(what string, err error) error {
	if wait, ok := retryAfter(err); ok {
		return fmt.Errorf("%s: %w", what, &tasks.ErrLater{At: s.cfg.Now().Add(wait), Why: "GitHub's rate limit"})
	}
	return fmt.Errorf("%s: %w", what, err)
}

// sorted makes an error of what was needed before a run: like later, but what people have to mend is told to them.
func (s *Source) sorted(what string, err error) error {
	switch {
	case status(err) == http.StatusUnauthorized:
		return &tasks.InputError{Sentence: "GitHub does not accept errand's credentials. An operator has to renew them (" + what + ")."}
	case lasting(err):
		return &tasks.InputError{Sentence: "GitHub did not let errand " + what + ": it is gone, or errand was given no access."}
	}
	return s.later(what, err)
}
