package agent

import (
	"cmp"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/errand-fleet/errand/agent/internal/keeper"
	"github.com/errand-fleet/errand/agent/internal/protocol"
	"github.com/errand-fleet/errand/agent/internal/redact"
)

// The CLI's words for failures, with their classes. Indefinite words ("unknown", "api_error") are left out, so that the
// next field decides. The words seen in a run are in testdata/errors; the others are in the schema
// inside the CLI (2.1.332). TestWordsOfTheCLI checks that the CLI still has them.
var (
	// subtypes of a result.
	subtypes = map[string]Class{
		"error_max_turns":                     ClassMaxTurns,
		"error_max_budget_usd":                ClassBudget,
		"error_max_structured_output_retries": ClassSchema,
	}
	// stopReasons are the model's stop reasons in a result.
	stopReasons = map[string]Class{"refusal": ClassRefusal}
	// apiErrors are values of "api_error" in a result, the most exact word about a failed request.
	apiErrors = map[string]Class{
		"usage_limit_reached":           ClassUsageLimit,
		"connection_failed":             ClassOverloaded,
		"no_response":                   ClassOverloaded,
		"stream_idle_timeout":           ClassOverloaded,
		"tls_untrusted_ca":              ClassConfig,
		"tls_cert_signature_failure":    ClassConfig,
		"network_edge_blocked":          ClassConfig,
		"api_key_auth_disabled":         ClassAuth,
		"invalid_credential_header":     ClassAuth,
		"org_disabled_credential":       ClassAuth,
		"model_requires_usage_credits":  ClassBilling,
		"long_context_credits_required": ClassBilling,
		"claude_code_version_too_old":   ClassCLIVersion,
		"tool_history_mismatch":         ClassSession,
		"autocompact_thrashing":         ClassContext,
		"message_over_context_limit":    ClassContext,
		"pdf_too_large":                 ClassContext,
		"safety_monitor_blocked":        ClassRefusal,
		"dlp_request_denied":            ClassRefusal,
		"empty_completion":              ClassNoResult,
		"malformed_tool_use_exhausted":  ClassNoResult,
	}
	// remedies are values of "remedy" in "api_error_params" of an assistant message. "model_access" means that an
	// account of AWS lacks the model, the others that its credential is refused.
	remedies = map[string]Class{"model_access": ClassModel}
	// terminalReasons say why a turn ended. An interruption that errand did not send came from outside, as SIGINT.
	terminalReasons = map[string]Class{
		"max_turns":                         ClassMaxTurns,
		"budget_exhausted":                  ClassBudget,
		"structured_output_retry_exhausted": ClassSchema,
		"prompt_too_long":                   ClassContext,
		"blocking_limit":                    ClassContext,
		"rapid_refill_breaker":              ClassContext,
		"image_error":                       ClassContext,
		"malformed_tool_use_exhausted":      ClassNoResult,
		"aborted_streaming":                 ClassKilled,
		"aborted_tools":                     ClassKilled,
	}
	// assistantErrors are values of "error" in an assistant message and in an api_retry.
	assistantErrors = map[string]Class{
		"authentication_failed": ClassAuth,
		"oauth_org_not_allowed": ClassAuth,
		"account_on_hold":       ClassAuth,
		"verification_required": ClassAuth,
		"billing_error":         ClassBilling,
		"rate_limit":            ClassRateLimit,
		"model_not_found":       ClassModel,
		"overloaded":            ClassOverloaded,
		"server_error":          ClassOverloaded,
	}
	// startupFailures are values of "startup_failure_reason" in a result of a CLI that refused to start.
	startupFailures = map[string]startupFailure{
		"bypass_root": {
			ClassConfig, "Run the worker as an ordinary user: as root the CLI does not allow all tools.",
		},
		"config_file_invalid": {
			ClassConfig, "Repair or remove the configuration file that the message names; until then no run can start.",
		},
		"proxy_invalid": {ClassConfig, "Make HTTPS_PROXY and HTTP_PROXY complete URLs."},
		"cwd_unavailable": {
			ClassWorkspace, "Find out what deletes or moves working directories while runs start.",
		},
		"temp_dir_unusable":   {ClassWorkspace, "Let the worker's user write to TMPDIR."},
		"cli_version_too_old": {ClassCLIVersion, ""},
		"org_verify_failed":   {ClassAuth, ""},
		"org_pin_mismatch": {
			ClassAuth, "Use a credential of the organization that the machine's managed settings name.",
		},
		"org_config_refused":                   {ClassAuth, ""},
		"gateway_access_denied":                {ClassAuth, "Ask the gateway's administrator to let this account in."},
		"org_config_required_unavailable":      {ClassOverloaded, ""},
		"remote_settings_required_unavailable": {ClassOverloaded, ""},
	}
)

type startupFailure struct {
	class  Class
	remedy string // more specific than that of the class; empty: use that of the class
}

// classifyResult returns the failure in the latest result, or nil. Failures of the API have the subtype "success", so
// only is_error counts.
func classifyResult(f *protocol.Facts) *Error {
	r := f.Last
	if r == nil || !r.IsError {
		return nil
	}
	text := r.Said()
	e := NewError(resultClass(f, text), redact.Clip(strings.Join(strings.Fields(text), " "), 500))
	e.Remedy = cmp.Or(startupFailures[r.StartupFailure].remedy, e.Remedy)
	return e
}

// resultClass uses the most exact word that the result has. CLI 2.1.197 has no api_error and says "completed" for most
// failures, and words change between versions, so vaguer words follow.
func resultClass(f *protocol.Facts, text string) Class {
	r := f.Last
	return cmp.Or(
		subtypes[f.LastSubtype],
		startupClass(r.StartupFailure),
		stopReasons[r.StopReason],
		apiErrors[r.APIError],
		remedies[f.Remedy],
		terminalReasons[r.TerminalReason],
		limitClass(f),
		exactStatus[int(r.APIStatus)],
		assistantErrors[f.AssistantError],
		statusClass(int(r.APIStatus)),
		textClass(text),
		requestClass(f),
		ClassUnknown,
	)
}

// startupClass returns the class of a startup failure, also for reasons that errand does not know.
func startupClass(reason string) Class {
	if reason == "" {
		return ""
	}
	return cmp.Or(startupFailures[reason].class, ClassConfig)
}

// limitClass distinguishes a limit of the account's plan, which resets at a known time, from too many requests. The
// event alone does not decide: it may be about an earlier request.
func limitClass(f *protocol.Facts) Class {
	limited := f.Last.APIStatus == 429 || f.AssistantError == "rate_limit"
	if limited && f.RateLimit != nil && f.RateLimit.Status == "rejected" {
		return ClassUsageLimit
	}
	return ""
}

// exactStatus are statuses that are more specific than the CLI's word.
var exactStatus = map[int]Class{402: ClassBilling, 413: ClassContext}

func statusClass(status int) Class {
	switch {
	case status == 401 || status == 403:
		return ClassAuth
	case status == 404:
		return ClassModel
	case status == 429:
		return ClassRateLimit
	case status == 408 || status >= 500:
		return ClassOverloaded
	}
	return ""
}

// apiClass returns the class of the latest call that a gateway saw; empty if it was answered, or none has ended.
func apiClass(api *API) Class {
	if api.Unreachable() {
		return ClassOverloaded
	}
	return statusClass(api.Status)
}

// requestClass is for a request that was refused without a known reason.
func requestClass(f *protocol.Facts) Class {
	if f.Last.APIStatus >= 400 || f.AssistantError == "invalid_request" {
		return ClassRequest
	}
	return ""
}

// texts are beginnings of the CLI's sentences for failures that it reports in no field. Text of a tool, a server or the
// model can appear in the same place, so no number or single word decides.
var texts = []struct {
	start string
	class Class
}{
	{"No conversation found with session ID", ClassSession},
	{"Error parsing streaming input line", ClassInternal},
	{"API Error: 400 Publisher Model `", ClassModel},                          // of Vertex AI
	{"API Error: 400 Your request exceeds the service quota", ClassRateLimit}, // of Bedrock
}

// textClass returns the class of the first line that begins with one of the texts.
func textClass(text string) Class {
	for line := range strings.Lines(text) {
		for _, t := range texts {
			if strings.HasPrefix(line, t.start) {
				return t.class
			}
		}
	}
	return ""
}

// Errors of the operating system for a program that cannot be executed, and for a machine that currently lacks
// resources or is replacing the program.
var (
	notExecutable = []syscall.Errno{syscall.ENOENT, syscall.EACCES, syscall.ENOEXEC}
	noRoom        = []syscall.Errno{syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE, syscall.ETXTBSY}
)

// startFailure returns why the CLI could not be started in dir.
func startFailure(err error, dir string) *Error {
	errno, _ := errors.AsType[syscall.Errno](err)
	_, tried := errors.AsType[*keeper.StartError](err) // or else there was not even a keeper
	_, statErr := os.Stat(dir)
	if u, ok := errors.AsType[*keeper.Unavailable](err); ok && u.Busy {
		return NewError(ClassStart, u.Error())
	} else if ok {
		return lacking(noKeeper, u.Problem, u.Remedy)
	}
	switch {
	case slices.Contains(noRoom, errno), errors.Is(err, io.ErrUnexpectedEOF): // or the keeper got none and died
		return NewError(ClassStart, err.Error())
	case tried && statErr != nil:
		return NewError(ClassWorkspace, "working directory: "+statErr.Error())
	case tried && slices.Contains(notExecutable, errno):
		return NewError(ClassCLIMissing, err.Error())
	default:
		return NewError(ClassInternal, err.Error())
	}
}
