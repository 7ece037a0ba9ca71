package agent

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// conclude turns what the output said, the cause of the stop and the process's end into an outcome, in that order of weight: exit
// codes alone lie (SIGINT ends with 0, SIGTERM without a result; claude-cli.md §9).
//
// finished says that the session had become idle before anything stopped the run; cause is the first thing that did.
func conclude(f *facts, finished bool, cause error, exit exitStatus, stderr string) (Outcome, *Error) {
	switch {
	case finished, cause == nil && f.Last != nil && !f.Open:
		if e := classifyResult(f); e != nil {
			return Failed, e
		}
		return Done, nil
	case errors.Is(cause, ErrLimit):
		return Limit, nil
	case errors.Is(cause, ErrStalled):
		return Stalled, nil
	case errors.Is(cause, errHopeless):
		return Failed, hopeless(f)
	case errors.Is(cause, errStart), errors.Is(cause, errDeaf) && exit.Signal == "" && exit.Code == 0:
		return Failed, NewError(ClassConfig, fmt.Sprintf("%v; its last words: %s", cause, orDash(lastLine(stderr))))
	case errors.Is(cause, errDeaf):
		return Failed, classifyExit(exit, stderr) // it had died, and that was why
	case cause != nil:
		return Stopped, nil //nolint:nilerr // the cause is the caller's own; stopping is no failure of the run
	default:
		return Failed, classifyExit(exit, stderr)
	}
}

func hopeless(f *facts) *Error {
	if f.RetryError == "billing_error" {
		return NewError(ClassBilling, "the model refuses the account")
	}
	return NewError(ClassAuth, "the model refuses the credential")
}

// assistantErrors are the values of an assistant message's "error", the most specific thing the CLI says about a failure.
var assistantErrors = map[string]Class{
	"authentication_failed": ClassAuth,
	"billing_error":         ClassBilling,
	"rate_limit":            ClassRateLimit,
	"model_not_found":       ClassModel,
	"server_error":          ClassOverloaded,
}

// classifyResult reads a failure from the latest result; nil when it was none. Every failure of the API says subtype "success"
// with is_error true, so only is_error counts.
func classifyResult(f *facts) *Error {
	r := f.Last
	if r == nil || !r.IsError {
		return nil
	}
	text := r.Result
	if text == "" {
		text = strings.Join(r.Errors, "; ")
	}
	return NewError(resultClass(f, text), clip(strings.Join(strings.Fields(text), " "), 500))
}

func resultClass(f *facts, text string) Class {
	r := f.Last
	switch {
	case f.LastSubtype == "error_max_turns":
		return ClassMaxTurns
	case f.LastSubtype == "error_max_budget_usd":
		return ClassBudget
	case r.StartupFailure != "":
		return ClassConfig
	case r.StopReason == "refusal":
		return ClassRefusal
	case r.TerminalReason == "prompt_too_long", r.TerminalReason == "blocking_limit":
		return ClassContext
	case r.APIStatus == 402:
		return ClassBilling
	case f.RateLimit != nil && f.RateLimit.Status == "rejected":
		return ClassUsageLimit
	}
	if c, ok := assistantErrors[f.AssistantError]; ok {
		return c
	}
	switch status := int(r.APIStatus); {
	case status == 401 || status == 403:
		return ClassAuth
	case status == 429:
		return ClassRateLimit
	case status >= 500:
		return ClassOverloaded
	case strings.HasPrefix(text, "No conversation found with session ID"):
		return ClassSession
	}
	return ClassUnknown
}

// retryAt is when a run that failed by class may succeed: when the model said so, or its usage limit resets. Zero: nobody said, or it is
// no matter of time.
func retryAt(c Class, limit *wireRateLimit, api *API) (at time.Time) {
	if c != ClassRateLimit && c != ClassUsageLimit && c != ClassOverloaded {
		return time.Time{}
	}
	if api != nil {
		at = api.RetryAt
	}
	if limit != nil && limit.Status == "rejected" && limit.ResetsAt > 0 {
		if reset := time.Unix(int64(limit.ResetsAt), 0); reset.After(at) {
			at = reset
		}
	}
	return at
}

// configErrors are what the CLI writes to stderr when it refuses to start.
var configErrors = regexp.MustCompile(`(?m)^error: |^Error: |cannot be used with root|native binary not installed|no longer exists|already in use|not found:|Invalid `)

// classifyExit judges a CLI that ended by itself without any result.
func classifyExit(exit exitStatus, stderr string) *Error {
	switch {
	case strings.Contains(stderr, "No conversation found with session ID"):
		return NewError(ClassSession, lastLine(stderr))
	case exit.Signal != "":
		return NewError(ClassKilled, "the CLI was ended by "+exit.Signal+", which errand did not send")
	case exit.Code > 128:
		return NewError(ClassKilled, fmt.Sprintf("the CLI exited with %d, as after a signal errand did not send", exit.Code))
	case exit.Code != 0 && configErrors.MatchString(stderr):
		return NewError(ClassConfig, lastLine(stderr))
	case exit.Code != 0:
		return NewError(ClassNoResult, fmt.Sprintf("the CLI exited with %d and no result: %s", exit.Code, lastLine(stderr)))
	default:
		return NewError(ClassNoResult, "the CLI exited without a result: "+lastLine(stderr))
	}
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return clip(s[strings.LastIndexByte(s, '\n')+1:], 300)
}
