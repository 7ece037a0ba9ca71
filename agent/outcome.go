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
	"github.com/errand-fleet/errand/agent/internal/protocol"
	"github.com/errand-fleet/errand/agent/internal/redact"
)

// Causes for which the runner itself ends a run. They are causes of its context, so that the first one wins.
var (
	ErrLimit   = errors.New("run limit reached")
	ErrStalled = errors.New("no sign of work")
	errStart   = errors.New("the CLI did not answer at start")
	errStdin   = errors.New("the CLI does not read its input")
)

// hopelessError ends a run whose CLI retries a request that cannot succeed. reason is the CLI's word for the error.
type hopelessError struct{ reason string }

func (e hopelessError) Error() string { return "the model refuses every request: " + e.reason }

// hopeless reports whether a request that fails with this error of an api_retry cannot succeed later.
func hopeless(reason string) bool {
	c, known := assistantErrors[reason]
	return known && c.Retry() == RetryNever
}

// conclude determines the outcome from the output, the cause that stopped the run, and the end of the process, in this
// order: exit codes alone are misleading (SIGINT ends with 0, SIGTERM without a result). finished
// says that the session had become idle before anything stopped the run.
func conclude(f *protocol.Facts, finished bool, cause error, exit keeper.Exit, stderr string) (Outcome, *Error) {
	hopeless, isHopeless := errors.AsType[hopelessError](cause)
	disk, tooMuchDisk := errors.AsType[diskError](cause)
	lastWords := fmt.Sprintf("; its last words: %s", cmp.Or(lastWords(f, stderr), "-"))
	switch {
	case finished, cause == nil && exit.Processes == 0 && exit.Memory == 0 && exit.Silence == 0 && f.Last != nil &&
		(!f.Open || !f.Began):
		if e := classifyResult(f); e != nil {
			return Failed, e
		}
		return Done, nil
	case errors.Is(cause, gateway.ErrSpent):
		return Failed, NewError(ClassBudget, gateway.ErrSpent.Error())
	case tooMuchDisk:
		return Failed, NewError(ClassDisk, disk.Error())
	case exit.Processes > 0:
		return Failed, NewError(ClassProcesses, fmt.Sprintf("the run had %d processes and threads", exit.Processes))
	case exit.Memory > 0:
		return Failed, NewError(ClassMemory, fmt.Sprintf("the run had %d MiB of memory", exit.Memory>>20))
	case exit.Silence > 0 && (cause == nil || internal(cause)):
		return Failed, NewError(ClassFrozen, fmt.Sprintf("the worker sent its keeper no sign of life for %s",
			exit.Silence.Round(time.Second)))
	case errors.Is(cause, ErrLimit):
		return Limit, nil
	case errors.Is(cause, ErrStalled):
		return Stalled, nil
	case isHopeless:
		return Failed, NewError(assistantErrors[hopeless.reason], hopeless.Error())
	case errors.Is(cause, errStart) && refused(cause):
		return Failed, NewError(ClassConfig, cause.Error()+lastWords)
	case errors.Is(cause, errStart):
		return Failed, NewError(ClassStart, cause.Error()+lastWords)
	case errors.Is(cause, errStdin) && f.Last != nil && f.Last.IsError && !f.Began:
		return Failed, classifyResult(f) // it refused to start, and exits slowly
	case errors.Is(cause, errStdin) && exit.Stopped:
		return Failed, NewError(ClassNoResult, cause.Error()+lastWords)
	case errors.Is(cause, errStdin):
		return Failed, classifyExit(f, exit, stderr) // it did not read because it had exited
	case isUnfit(cause):
		return Failed, inputError(cause)
	case cause != nil:
		return Stopped, nil //nolint:nilerr // the cause is the caller's; stopping is not a failure of the run
	default:
		return Failed, classifyExit(f, exit, stderr)
	}
}

// internal reports whether a run found out the cause itself, such as that the CLI does not answer. If the worker was
// suspended, such a cause says nothing about the CLI.
func internal(cause error) bool {
	_, hopeless := errors.AsType[hopelessError](cause)
	return hopeless || slices.ContainsFunc([]error{ErrStalled, errStart, errStdin}, func(c error) bool {
		return errors.Is(cause, c)
	})
}

// retryAt returns when a run that failed with a class may succeed: the time that the model gave, or the reset of its
// usage limit. Zero means that the time is unknown, or that time does not help.
func retryAt(c Class, limit *protocol.RateLimit, api *API) (at time.Time) {
	switch c.Retry() {
	case RetrySoon, RetryLater, RetryReset:
	case RetryNever:
		if api != nil && (c == ClassAuth || c == ClassBilling || c == ClassModel) {
			return api.FreeAt // of another credential; zero: no other one may help
		}
		return time.Time{}
	default:
		return time.Time{}
	}
	if api != nil && !api.FreeAt.IsZero() {
		return api.FreeAt
	}
	if api != nil {
		at = api.RetryAt
	}
	if limit != nil && limit.Status == "rejected" {
		now := time.Now()
		reset := time.Unix(int64(limit.ResetsAt), 0)
		if reset.After(now) && reset.Before(now.Add(gateway.MaxReset)) && reset.After(at) { // it could be milliseconds
			at = reset
		}
	}
	return at
}

// classifyExit classifies the failure of a CLI that exited by itself without a result.
func classifyExit(f *protocol.Facts, exit keeper.Exit, stderr string) *Error {
	if e := servicesFailed(exit, stderr); e != nil {
		return e
	}
	last := cmp.Or(lastWords(f, stderr), "-")
	switch {
	case exit.KeeperDied:
		return NewError(ClassKilled, "the CLI's keeper died, and the CLI with it")
	case exit.Signal == "SIGKILL" && exit.OOM > 0:
		return NewError(ClassOOM, "the kernel killed the CLI for lack of memory")
	case exit.Signal != "":
		return NewError(ClassKilled, "the CLI was ended by "+exit.Signal+", which errand did not send")
	case exit.Code > 128:
		return NewError(ClassKilled, fmt.Sprintf("the CLI exited with %d, as after a signal errand did not send",
			exit.Code))
	case exit.Code != 0 && !f.Began:
		return NewError(cmp.Or(textClass(stderr), ClassConfig), last)
	case exit.Code != 0:
		return NewError(cmp.Or(textClass(stderr), ClassNoResult),
			fmt.Sprintf("the CLI exited with %d and no result: %s", exit.Code, last))
	default:
		return NewError(ClassNoResult, "the CLI exited without a result: "+last)
	}
}

// lastWords returns the CLI's last output that was not of the protocol: plain lines on stdout, the last line there if
// errand does not know its kind, and the last line on stderr.
func lastWords(f *protocol.Facts, stderr string) string {
	words := slices.Clone(f.Raw)
	if f.Strange != "" {
		words = append(words, f.Strange)
	}
	stderr = strings.TrimSpace(stderr)
	if last := redact.Clip(stderr[strings.LastIndexByte(stderr, '\n')+1:], 300); last != "" {
		words = append(words, last)
	}
	return strings.Join(words, " / ")
}
