package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent/internal/keeper"
	"github.com/errand-fleet/errand/agent/internal/protocol"
	"github.com/errand-fleet/errand/internal/fake/modelfake/clitest"
	"golang.org/x/sys/unix"
)

// Errors without a recording, because they need a coincidence or must not be provoked.
func TestConclude(t *testing.T) {
	t.Parallel()
	limits := func(status string) *protocol.RateLimit {
		return &protocol.RateLimit{Status: status, ResetsAt: 4102444800}
	}
	failed := func(r protocol.Result) *protocol.Result { r.IsError = true; return &r }
	gone := keeper.Exit{Code: 1}
	for name, c := range map[string]struct {
		facts  protocol.Facts
		cause  error
		exit   keeper.Exit
		stderr string
		as     Outcome
		want   Class
	}{
		"an error, whatever the exit code": {
			facts: protocol.Facts{Last: failed(protocol.Result{APIStatus: 500})}, want: ClassOverloaded,
		},
		"an answer, whatever the exit code": {
			facts: protocol.Facts{Last: &protocol.Result{Text: "42"}}, exit: gone, as: Done,
		},
		"an answer, then a signal": {
			facts: protocol.Facts{Last: &protocol.Result{Text: "42"}}, exit: keeper.Exit{Code: -1, Signal: "SIGSEGV"},
			as: Done,
		},
		"an error without a word": {facts: protocol.Facts{Last: failed(protocol.Result{})}, want: ClassUnknown},
		"death after an answer": {
			facts: protocol.Facts{Last: &protocol.Result{Text: "42"}, Open: true, Began: true},
			exit:  keeper.Exit{Code: -1, Signal: "SIGKILL"}, want: ClassKilled,
		},
		"a refused start while the prompt was sent": {
			facts: protocol.Facts{Last: failed(protocol.Result{StartupFailure: "cwd_unavailable"}), Open: true},
			exit:  gone, want: ClassWorkspace,
		},
		"a refused start, why so ever": {facts: protocol.Facts{Last: failed(protocol.Result{StartupFailure: "brand_new"})}, exit: gone, want: ClassConfig},
		// Words of which nothing is known must not hide the ones behind them.
		"unknown words": {
			facts: protocol.Facts{Last: failed(protocol.Result{
				APIError: "brand_new", TerminalReason: "brand_new", APIStatus: 503,
			}), AssistantError: "unknown"},
			want: ClassOverloaded,
		},
		"the exact word before the status": {
			facts: protocol.Facts{Last: failed(protocol.Result{
				APIError: "model_requires_usage_credits", APIStatus: 429,
			}), AssistantError: "rate_limit"}, want: ClassBilling,
		},
		"a refused credential": {
			facts: protocol.Facts{
				Last:           failed(protocol.Result{APIError: "provider_credentials", APIStatus: 403}),
				AssistantError: "authentication_failed", Remedy: "refresh_credentials",
			},
			want: ClassAuth,
		},
		// A limit that an earlier request met is not why this one failed.
		"an earlier limit": {facts: protocol.Facts{
			Last: failed(protocol.Result{APIStatus: 500}), RateLimit: limits("rejected"),
		}, want: ClassOverloaded},
		"a limit, old CLI": {facts: protocol.Facts{
			Last: failed(protocol.Result{APIStatus: 429}), RateLimit: limits("rejected"),
		}, want: ClassUsageLimit},
		"a limit that is near": {facts: protocol.Facts{
			Last: failed(protocol.Result{APIStatus: 429}), RateLimit: limits("allowed_warning"),
		}, want: ClassRateLimit},
		"a limit without event": {
			facts: protocol.Facts{Last: failed(protocol.Result{APIError: "usage_limit_reached"})},
			want:  ClassUsageLimit,
		},
		// Numbers and words in a text decide nothing.
		"429 in a text": {facts: protocol.Facts{Last: failed(protocol.Result{Text: "API Error: 429 permission denied"})}, want: ClassUnknown},
		"429 in stderr": {
			facts: protocol.Facts{Began: true}, exit: gone, stderr: "429 rate limited: permission denied",
			want: ClassNoResult,
		},
		"permission in stderr":  {exit: gone, stderr: "EACCES: permission denied, 401", want: ClassConfig},
		"an old session's text": {exit: gone, stderr: "No conversation found with session ID: x", want: ClassSession},
		"that text in the midst": {
			exit: gone, stderr: "hook said: No conversation found with session ID: x", want: ClassConfig,
		},
		"no word at all": {facts: protocol.Facts{Began: true}, want: ClassNoResult},
		// Who sent the signal.
		"out of memory":             {exit: keeper.Exit{Code: -1, Signal: "SIGKILL", OOM: 1}, want: ClassOOM},
		"killed, memory enough":     {exit: keeper.Exit{Code: -1, Signal: "SIGKILL"}, want: ClassKilled},
		"another one ran out of it": {exit: keeper.Exit{Code: -1, Signal: "SIGTERM", OOM: 1}, want: ClassKilled},
		"the caller's stop": {cause: errors.New("stop"), exit: keeper.Exit{
			Code: -1, Signal: "SIGKILL", OOM: 1,
		}, as: Stopped},
		"the limit": {cause: ErrLimit, exit: keeper.Exit{Code: 143, Stopped: true}, as: Limit},
		"silence":   {cause: ErrStalled, exit: keeper.Exit{Code: 143, Stopped: true}, as: Stalled},
		"deaf, and ended by us": {
			cause: fmt.Errorf("%w: EAGAIN", errStdin), exit: keeper.Exit{Code: 143, Stopped: true}, want: ClassNoResult,
		},
		"deaf, and killed by us": {
			cause: errStdin, exit: keeper.Exit{Code: -1, Signal: "SIGKILL", Stopped: true}, want: ClassNoResult,
		},
		"deaf because it was dead": {
			cause: errStdin, exit: keeper.Exit{Code: -1, Signal: "SIGKILL"}, want: ClassKilled,
		},
		"deaf because it refused to start": {
			facts: protocol.Facts{Last: failed(protocol.Result{Errors: []string{"No conversation found with session ID: x"}}), Open: true},
			cause: errStdin, exit: keeper.Exit{Code: 143, Stopped: true}, want: ClassSession,
		},
		"deaf because it had no room": {
			cause: errStdin, exit: keeper.Exit{Code: -1, Signal: "SIGKILL", OOM: 2}, want: ClassOOM,
		},
		"mute at start": {
			cause: fmt.Errorf("wait: %w", errStart), exit: keeper.Exit{Code: 143, Stopped: true}, want: ClassStart,
		},
		"unwilling at start": {
			cause: fmt.Errorf("%w: %w", errStart, &protocol.Refusal{Message: "no"}), want: ClassConfig,
		},
		"a hopeless retry": {cause: hopelessError{"billing_error"}, want: ClassBilling},
	} {
		if c.as == "" {
			c.as = Failed
		}
		outcome, err := conclude(&c.facts, false, c.cause, c.exit, c.stderr)
		var class Class
		if err != nil {
			class = err.Class
		}
		if outcome != c.as || class != c.want {
			t.Errorf("%s: %s, %v; want %s %s", name, outcome, err, c.as, c.want)
		}
	}
}

func TestHopelessRetries(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]bool{
		"authentication_failed": true, "oauth_org_not_allowed": true, "billing_error": true, "model_not_found": true,
		"rate_limit": false, "overloaded": false, "server_error": false, "unknown": false,
		"brand_new": false, "": false,
	} {
		if hopeless(word) != want {
			t.Errorf("%q: %v", word, !want)
		}
	}
}

func TestRetry(t *testing.T) {
	t.Parallel()
	fail := func(c Class) Result { return Result{Outcome: Failed, Error: NewError(c, "x")} }
	for _, c := range []struct {
		result Result
		want   Retry
	}{
		{Result{Outcome: Done}, RetryNever},
		{Result{Outcome: Limit}, RetryNever},
		{Result{Outcome: Stopped}, RetryNever},
		{Result{Outcome: Stalled}, RetryResume},
		{fail(ClassOverloaded), RetrySoon},
		{fail(ClassRateLimit), RetryLater},
		{fail(ClassUsageLimit), RetryReset},
		{fail(ClassSession), RetryFresh},
		{fail(ClassKilled), RetryResume},
		{fail(ClassFrozen), RetryContinue},
		{fail(ClassAuth), RetryNever},
		{fail("of a later version"), RetryNever},
	} {
		if got := c.result.Retry(); got != c.want {
			t.Errorf("%s %v: %s, want %s", c.result.Outcome, c.result.Error, got, c.want)
		}
	}
}

// A reset that cannot be right is unknown, whether the gateway or the CLI has it. In milliseconds it is in a year that
// JSON has not.
func TestReset(t *testing.T) {
	t.Parallel()
	soon := time.Now().Add(2 * time.Hour).Truncate(time.Second)
	for name, c := range map[string]struct{ resets, want time.Time }{
		"soon":         {soon, soon},
		"over":         {time.Now().Add(-time.Hour), time.Time{}},
		"far ahead":    {time.Now().Add(9 * 24 * time.Hour), time.Time{}},
		"milliseconds": {time.Unix(soon.UnixMilli(), 0), time.Time{}},
	} {
		api := &API{Status: http.StatusTooManyRequests, Limits: map[string]string{
			"unified-status": "rejected", "unified-reset": strconv.FormatInt(c.resets.Unix(), 10),
		}}
		status, resets, _ := api.UsageLimit()
		for who, limit := range map[string]*protocol.RateLimit{
			"gateway": {Status: status, ResetsAt: resets},
			"CLI":     {Status: "rejected", ResetsAt: float64(c.resets.Unix())},
		} {
			if at := retryAt(ClassUsageLimit, limit, nil); !at.Equal(c.want) {
				t.Errorf("%s, by the %s: %v, want %v", name, who, at, c.want)
			}
		}
	}
}

// A refusal for good is repeated when another credential is free, and keeps its advice.
func TestRefusedForGoodUntilAnotherIsFree(t *testing.T) {
	t.Parallel()
	for _, class := range []Class{ClassAuth, ClassBilling, ClassModel} {
		for _, free := range []time.Time{{}, time.Now(), time.Now().Add(time.Hour)} {
			e, want := NewError(class, ""), RetryReset
			at := retryAt(class, nil, &API{FreeAt: free})
			e.until(at)
			if free.IsZero() {
				want = RetryNever
			}
			if got := (Result{Error: e, RetryAt: at}).Retry(); !at.Equal(free) || got != want ||
				e.User != NewError(class, "").User {
				t.Errorf("%s, free at %v: again %s at %v: %s", class, free, got, at, e.User)
			}
		}
	}
	if at := retryAt(ClassContext, nil, &API{FreeAt: time.Now()}); !at.IsZero() {
		t.Errorf("a conversation that is too long is repeated at %v", at)
	}
	if at := retryAt(ClassAuth, nil, &API{RetryAt: time.Now().Add(time.Hour)}); !at.IsZero() {
		t.Errorf("a refused key that no other one replaces is tried again at %v", at)
	}
}

// The reason of a refused start should have a specific remedy if the class's is too general.
func TestRemedyOfARefusedStart(t *testing.T) {
	t.Parallel()
	for reason, word := range map[string]string{
		"bypass_root": "ordinary user", "config_file_invalid": "Repair or remove", "proxy_invalid": "HTTPS_PROXY",
		"cli_version_too_old": "npm ci",
	} {
		e := classifyResult(&protocol.Facts{Last: &protocol.Result{IsError: true, StartupFailure: reason}})
		if !strings.Contains(e.Remedy, word) {
			t.Errorf("%s: %q", reason, e.Remedy)
		}
	}
}

// A CLI that has learnt other words would be misunderstood without a test failing: those we act on are still among
// its own.
func TestWordsOfTheCLI(t *testing.T) {
	t.Parallel()
	f, err := os.Open(clitest.Find(t))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	program, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(program) }()
	words := map[string]bool{}
	for _, table := range []map[string]Class{
		subtypes, stopReasons, apiErrors, remedies, terminalReasons, assistantErrors,
	} {
		for w := range table {
			words[w] = true
		}
	}
	for w := range startupFailures {
		words[w] = true
	}
	// Most are near one that is only there; reading hundreds of megabytes for each takes seconds.
	near := max(0, bytes.Index(program, []byte("error_during_execution"))-16<<20)
	for w := range words {
		if !bytes.Contains(program[near:], []byte(w)) && !bytes.Contains(program, []byte(w)) {
			t.Errorf("the CLI does not know the word %q any more", w)
		}
	}
}

// A full disk is not the requester's mistake and may have room again.
func TestStartFailure(t *testing.T) {
	t.Parallel()
	for errno, want := range map[syscall.Errno]Class{
		syscall.ENOENT: ClassCLIMissing, syscall.EACCES: ClassCLIMissing, syscall.ENOEXEC: ClassCLIMissing,
		syscall.EAGAIN: ClassStart, syscall.ENOMEM: ClassStart, syscall.EMFILE: ClassStart, syscall.ENFILE: ClassStart,
		syscall.ETXTBSY: ClassStart, syscall.E2BIG: ClassInternal, syscall.EINVAL: ClassInternal,
	} {
		err := fmt.Errorf("start the CLI: %w", &keeper.StartError{Message: errno.Error(), Errno: errno})
		if e := startFailure(err, "/"); e.Class != want {
			t.Errorf("%v: %s, want %s", errno, e.Class, want)
		}
	}
	for name, c := range map[string]struct {
		err  error
		dir  string
		want Class
	}{
		"no room for the keeper": {
			fmt.Errorf("start keeper: %w", &os.PathError{Err: syscall.EAGAIN}), "/", ClassStart,
		},
		"no keeper": {
			fmt.Errorf("start keeper: %w", &os.PathError{Err: syscall.ENOENT}), "/", ClassInternal,
		},
		"the directory went away": {
			fmt.Errorf("start the CLI: %w", &keeper.StartError{Errno: syscall.ENOENT}), "/nowhere", ClassWorkspace,
		},
		"the keeper died": {fmt.Errorf("start the CLI: %w", io.ErrUnexpectedEOF), "/", ClassStart},
		"the keeper could not be checked": {
			fmt.Errorf("start: %w", &keeper.Unavailable{Problem: "slow", Busy: true}), "/", ClassStart,
		},
		"the keeper is another one": {&keeper.Unavailable{Problem: "old"}, "/", ClassConfig},
		"something else":            {io.ErrShortWrite, "/", ClassInternal},
	} {
		if e := startFailure(c.err, c.dir); e.Class != c.want {
			t.Errorf("%s: %s, want %s", name, e.Class, c.want)
		}
	}
}
