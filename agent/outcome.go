package agent

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent/internal/gateway"
	"github.com/errand-fleet/errand/agent/internal/keeper"
	"github.com/errand-fleet/errand/agent/internal/redact"
)

// conclude turns what the output said, the cause of the stop and the process's end into an outcome, in that order of weight: exit
// codes alone lie (SIGINT ends with 0, SIGTERM without a result; claude-cli.md §9).
//
// finished says that the session had become idle before anything stopped the run; cause is the first thing that did.
func conclude(f *facts, finished bool, cause error, exit keeper.Exit, stderr string) (Outcome, *Error) {
	switch {
	case finished, cause == nil && exit.Processes == 0 && exit.Silence == 0 && f.Last != nil && (!f.Open || !f.Began):
		if e := classifyResult(f); e != nil {
			return Failed, e
		}
		return Done, nil
	case errors.Is(cause, gateway.ErrSpent):
		return Failed, NewError(ClassBudget, gateway.ErrSpent.Error())
	case exit.Processes > 0:
		return Failed, NewError(ClassProcesses, fmt.Sprintf("the run had %d processes and threads", exit.Processes))
	case exit.Silence > 0 && (cause == nil || ours(cause)):
		return Failed, NewError(ClassFrozen, fmt.Sprintf("the keeper had heard nothing of its worker for %s", exit.Silence.Round(time.Second)))
	case errors.Is(cause, ErrLimit):
		return Limit, nil
	case errors.Is(cause, ErrStalled):
		return Stalled, nil
	case errors.Is(cause, errHopeless):
		return Failed, NewError(assistantErrors[f.Hopeless], "the model refuses for good: "+f.Hopeless)
	case errors.Is(cause, errStart):
		class := ClassStart
		if _, refused := errors.AsType[*controlError](cause); refused {
			class = ClassConfig
		}
		return Failed, NewError(class, fmt.Sprintf("%v; its last words: %s", cause, orDash(lastWords(f, stderr))))
	case errors.Is(cause, errDeaf) && exit.Stopped:
		return Failed, NewError(ClassNoResult, fmt.Sprintf("%v; its last words: %s", cause, orDash(lastWords(f, stderr))))
	case errors.Is(cause, errDeaf):
		return Failed, classifyExit(f, exit, stderr) // it had died, and that was why
	case isUnfit(cause):
		return Failed, inputError(cause)
	case cause != nil:
		return Stopped, nil //nolint:nilerr // the cause is the caller's own; stopping is no failure of the run
	default:
		return Failed, classifyExit(f, exit, stderr)
	}
}

// ours reports whether a cause is one that the run found out by itself, as that the CLI does not answer: of a worker that stood still it says
// nothing.
func ours(cause error) bool {
	return slices.ContainsFunc([]error{ErrStalled, errHopeless, errStart, errDeaf}, func(c error) bool { return errors.Is(cause, c) })
}

// hopeless reports whether an api_retry with this error cannot succeed: then the CLI would try in vain for three minutes
// (claude-cli.md §9).
func hopeless(retryError string) bool {
	c, known := assistantErrors[retryError]
	return known && c.Retry() == RetryNever
}

// retryAt is when a run that failed by class may succeed: when the model said so, or its usage limit resets. Zero: nobody said, or it is
// no matter of time.
func retryAt(c Class, limit *wireRateLimit, api *API) (at time.Time) {
	switch c.Retry() {
	case RetrySoon, RetryLater, RetryReset:
	default:
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

// classifyExit judges a CLI that ended by itself without any result.
func classifyExit(f *facts, exit keeper.Exit, stderr string) *Error {
	last := orDash(lastWords(f, stderr))
	switch {
	case exit.KeeperDied:
		return NewError(ClassKilled, "the CLI's keeper died, and the CLI with it")
	case exit.Signal == "SIGKILL" && exit.OOM > 0:
		return NewError(ClassOOM, "the kernel killed the CLI for lack of memory")
	case exit.Signal != "":
		return NewError(ClassKilled, "the CLI was ended by "+exit.Signal+", which errand did not send")
	case exit.Code > 128:
		return NewError(ClassKilled, fmt.Sprintf("the CLI exited with %d, as after a signal errand did not send", exit.Code))
	case exit.Code != 0 && !f.Began:
		return NewError(cmp.Or(textClass(stderr), ClassConfig), last)
	case exit.Code != 0:
		return NewError(cmp.Or(textClass(stderr), ClassNoResult), fmt.Sprintf("the CLI exited with %d and no result: %s", exit.Code, last))
	default:
		return NewError(ClassNoResult, "the CLI exited without a result: "+last)
	}
}

// lastWords are what the CLI said last that was none of the protocol: on stderr, and in plain lines of its output.
func lastWords(f *facts, stderr string) string {
	words := f.Raw
	if last := lastLine(stderr); last != "" {
		words = append(slices.Clone(words), last)
	}
	return strings.Join(words, " / ")
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return redact.Clip(s[strings.LastIndexByte(s, '\n')+1:], 300)
}
