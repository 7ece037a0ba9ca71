package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent/internal/gateway"
	"github.com/errand-fleet/errand/agent/internal/keeper"
	"github.com/errand-fleet/errand/agent/internal/protocol"
	"github.com/errand-fleet/errand/agent/internal/redact"
	"github.com/errand-fleet/errand/agent/internal/tools"
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

// lastWords returns the CLI's last output that was not of the protocol: plain lines on stdout, and the last line on
// stderr.
func lastWords(f *protocol.Facts, stderr string) string {
	words := f.Raw
	stderr = strings.TrimSpace(stderr)
	if last := redact.Clip(stderr[strings.LastIndexByte(stderr, '\n')+1:], 300); last != "" {
		words = append(slices.Clone(words), last)
	}
	return strings.Join(words, " / ")
}

// answer answers one control request of the CLI.
func (l *liveRun) answer(ctx context.Context, q *protocol.Request) (any, error) {
	switch q.Subtype {
	case "can_use_tool":
		r := ToolRequest{ID: q.UseID, Tool: q.Tool, Input: json.RawMessage(q.Input), Blocked: q.Blocked, Human: q.Human}
		return permission(l.decide(ctx, r), r.Input), nil
	case "hook_callback":
		return l.hook(q), nil
	case "mcp_message":
		if q.Server == tools.ServerName && l.tools != nil {
			return l.tools.Answer(ctx, json.RawMessage(q.Message))
		}
	}
	return nil, fmt.Errorf("unsupported control request subtype: %s", q.Subtype)
}

// everyCallHook makes the CLI submit each call to hook before it judges the call itself, which rules need: it does not
// ask about calls that it takes for harmless (CLI 2.1.329). It does not make a call whose hook is not answered in
// time.
func everyCallHook() map[string]any {
	return map[string]any{"PreToolUse": []map[string]any{{
		"matcher": nil, "hookCallbackIds": []string{"route"}, "timeout": time.Hour.Seconds(),
	}}}
}

// hook lets a call pass, or makes the CLI ask about it. Only the answer to that question, for which the CLI waits
// without limit, denies a call, asks a person or makes the call, so that none of that happens twice. The agent would
// see a refusal by the hook itself as an error of the hook, and the CLI would take an answer that it cannot read for
// consent.
func (l *liveRun) hook(q *protocol.Request) any {
	in, err := q.Hook()
	r := ToolRequest{ID: in.UseID, Tool: in.Tool, Input: json.RawMessage(in.Input)}
	if err == nil && l.route(r).Action == Allow {
		return map[string]any{}
	}
	return map[string]any{"hookSpecificOutput": map[string]any{
		"hookEventName": "PreToolUse", "permissionDecision": "ask",
	}}
}

// route asks the policy. While the agent plans, it denies every call that may change something: in that mode the CLI
// asks too, and would make the calls that are allowed.
func (l *liveRun) route(r ToolRequest) tools.Verdict {
	v := l.policy.Route(r)
	if l.planning.Load() && v.Action != Deny && !r.Human && !tools.Harmless(r.Tool) {
		return tools.Verdict{Action: Deny, Reason: "This is a plan: change nothing, and say what you would do."}
	}
	return v
}

// decide routes a call. It waits for the host's decision, or makes a delegated call.
func (l *liveRun) decide(ctx context.Context, r ToolRequest) Decision {
	redactor := l.r.cfg.Redactor
	r.Text = tools.Describe(redactor, l.spec.Dir, r.Tool, r.Input)
	v := l.route(r)
	switch v.Action {
	case Allow:
		return Decision{Allow: true}
	case Ask:
		r.Reason = v.Reason
		return l.host.Permit(ctx, r)
	case Delegate:
		result, err := v.Run(ctx, r)
		if err != nil {
			reason := "errand tried to make this call in place of the tool, and failed: " + err.Error()
			return Decision{Reason: redactor.String(reason)}
		}
		return Decision{Reason: protocol.DelegatedResult + redactor.String(result)}
	default:
		return Decision{Reason: v.Reason}
	}
}

// permission returns the answer to can_use_tool. A denial needs a message, and CLI 2.1.197 took an allowance without
// the input for a denial (CLI 2.1.329).
func permission(d Decision, asked json.RawMessage) any {
	if !d.Allow {
		return map[string]any{"behavior": "deny", "message": cmp.Or(d.Reason, "This is not allowed here.")}
	}
	input := d.Input
	if input == nil {
		input = asked
	}
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	return map[string]any{"behavior": "allow", "updatedInput": input}
}

// Bounds of what a conversation can have used according to the CLI. A tool may write in place of the CLI.
const (
	maxClaim  = 10_000 // US dollars
	maxTokens = 1e12   // of each kind
)

// plausible returns the usage of all models according to the CLI, within bounds.
func plausible(usd float64, models map[string]protocol.ModelUsage) (float64, Usage) {
	within := func(v float64) int64 { return int64(min(max(v, 0), maxTokens)) }
	var sum Usage
	for _, u := range models {
		sum = sum.Plus(Usage{
			Input: within(u.Input), Output: within(u.Output), CacheRead: within(u.CacheRead),
			CacheCreation: within(u.CacheCreation),
		})
	}
	return min(max(usd, 0), maxClaim), sum
}

// share returns a run's share of the usage of its conversation, which the run continued from s. The CLI continues
// counting from s unless it had nothing to count from. Without s the run has used everything.
func (s *Session) share(usd float64, u Usage) (float64, Usage) {
	if s == nil || usd < s.CostUSD {
		return usd, u
	}
	return usd - s.CostUSD, u.Minus(s.Usage)
}

// setCost sets the cost of the run and of its conversation: as the gateway counted it, or else as the CLI reports it in
// last. With a gateway the CLI's report is only compared.
func (l *liveRun) setCost(res *Result, last *protocol.Result) {
	var claimed protocol.Result
	if last != nil {
		claimed = *last
	}
	var before Session
	if l.resume != nil {
		before = *l.resume
	}
	usd, usage := plausible(claimed.CostUSD, claimed.ModelUsage)
	share, shareUsage := l.resume.share(usd, usage)
	if api := res.API; api != nil {
		res.CostUSD, res.Usage = api.CostUSD, api.Usage
		res.Session.CostUSD, res.Session.Usage = before.CostUSD+api.CostUSD, before.Usage.Plus(api.Usage)
		atListPrices := !l.r.model.Priced() // as the CLI counts
		if claimed.CostUSD < 0 || atListPrices && share > res.CostUSD*1.01+0.0001 {
			l.doubtCost(claimed.CostUSD, res.CostUSD)
		}
		return
	}
	if usd != claimed.CostUSD {
		l.doubtCost(claimed.CostUSD, usd)
	}
	res.CostUSD, res.Usage, res.Session.CostUSD, res.Session.Usage = share, shareUsage, usd, usage
	if l.resume != nil && res.Turns == 0 && usd == 0 { // without a result the conversation keeps its previous cost
		res.CostUSD, res.Usage, res.Session.CostUSD, res.Session.Usage = 0, Usage{}, before.CostUSD, before.Usage
	}
}

// doubtCost notes a cost that the CLI reports and that is not used.
func (l *liveRun) doubtCost(claimed, counted float64) {
	l.log.Note(time.Now(), "! the CLI reports a cost of $%g; $%.4f counts", claimed, counted)
	l.r.log.Warn("the CLI reports an impossible cost", "run", l.spec.ID, "claimed", claimed, "counted", counted)
}
