package agent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent/internal/gateway"
	"github.com/errand-fleet/errand/agent/internal/protocol"
	"github.com/errand-fleet/errand/internal/transcript"
)

// Outcome is how a run ended.
type Outcome string

// The outcomes.
const (
	Done    Outcome = "done"    // the agent answered
	Failed  Outcome = "failed"  // Error says why
	Limit   Outcome = "limit"   // reached Spec.Limit
	Stalled Outcome = "stalled" // no sign of work for Spec.IdleLimit
	Stopped Outcome = "stopped" // the caller's context ended
)

// Result describes how a run ended.
type Result struct {
	Outcome    Outcome         `json:"outcome"`
	Text       string          `json:"text,omitempty"`    // the answers of all finished turns, for every outcome
	Partial    string          `json:"partial,omitempty"` // the text since the last answer, unless the outcome is Done
	Error      *Error          `json:"error,omitempty"`   // set if and only if Outcome is Failed
	ExitCode   int             `json:"exit_code"`         // of the CLI; -1 after a signal, or if it did not start
	Signal     string          `json:"signal,omitempty"`
	Stderr     string          `json:"stderr,omitempty"`      // its last lines
	Model      string          `json:"model,omitempty"`       // the model of the answer, or of the session
	StopReason string          `json:"stop_reason,omitempty"` // the last message's, such as max_tokens
	Usage      Usage           `json:"usage"`
	CostUSD    float64         `json:"cost_usd"` // counted by the run's gateway, or estimated by the CLI without one
	Turns      int             `json:"turns"`
	Session    Session         `json:"session"`
	Fresh      bool            `json:"fresh,omitempty"`      // a new conversation with Spec.History, not Spec.Resume
	Structured json.RawMessage `json:"structured,omitempty"` // the answer in Spec.Schema's form, or nil
	API        *API            `json:"api,omitempty"`        // traffic with the model; nil without a gateway
	RetryAt    time.Time       `json:"retry_at,omitzero"`    // when to try again, if Error is temporary; zero: unknown
	Egress     *EgressReport   `json:"egress,omitempty"`     // other hosts; nil if none, or without its own network
	Resources  Resources       `json:"resources"`

	// Instructions lists what the repositories told the agent, and what was cut or left out, for people.
	Instructions []string `json:"instructions,omitempty"`

	Started  time.Time     `json:"started"`
	Duration time.Duration `json:"duration"`
}

// Session is a conversation as the CLI saves it.
type Session struct {
	ID   string `json:"id"` // UUID
	Data []byte `json:"-"`  // saved by the CLI, packed; usually at most 8 MiB; may be empty
	// Total usage of the conversation. The CLI continues counting from here when it resumes, so a run's own share is
	// the difference.
	CostUSD float64 `json:"cost_usd"`
	Usage   Usage   `json:"usage"`
}

// Holds reports whether the conversation contains something with that ID, such as a message that the CLI has taken up.
func (s Session) Holds(id string) bool {
	a, err := transcript.Unpack(s.Data)
	return err == nil && a.Holds(id)
}

// Check reads all of Data. Its error says that the conversation cannot be resumed.
func (s Session) Check() error {
	if _, err := transcript.Unpack(s.Data); err != nil {
		return fmt.Errorf("read session %s: %w", s.ID, err)
	}
	return nil
}

// mode is the permission mode that a line of a conversation names. JSON within a text has other quotes.
var mode = regexp.MustCompile(`"permissionMode": ?"[A-Za-z]*"`)

// Portable returns Data for another machine: without the secrets of a redactor, and with the default permission mode,
// so that the CLI asks the person who continues it, whatever the run was allowed.
func (s Session) Portable(secrets *Redactor) ([]byte, error) {
	a, err := transcript.Unpack(s.Data)
	if err != nil {
		return nil, fmt.Errorf("read session %s: %w", s.ID, err)
	}
	for i, f := range a.Files {
		a.Files[i].Content = mode.ReplaceAll(secrets.Bytes(f.Content), []byte(`"permissionMode":"default"`))
	}
	return a.Pack()
}

// Usage counts the tokens of a run.
type Usage = gateway.Usage

// API is what the gateway of a run saw of its traffic with the model.
type API = gateway.API

// Credential authenticates runs to the model.
type Credential = gateway.Credential

// Resources counts what a run used and wrote.
type Resources struct {
	CPU     time.Duration  `json:"cpu"`
	MaxRSS  int64          `json:"max_rss"`           // bytes, of the largest process
	Peak    int64          `json:"peak,omitempty"`    // bytes, of all processes together; 0: unknown
	Disk    int64          `json:"disk,omitempty"`    // bytes that the run added, at the last measurement
	Swept   int            `json:"swept,omitempty"`   // processes that outlived the CLI and were killed
	Stuck   int            `json:"stuck,omitempty"`   // processes that could not be killed (uninterruptible sleep)
	Lines   int64          `json:"lines"`             // of output
	Raw     int64          `json:"raw,omitempty"`     // lines that were not JSON
	Cut     int64          `json:"cut,omitempty"`     // lines too long to decode; logged whole
	Unknown map[string]int `json:"unknown,omitempty"` // unknown kinds of lines, and tools as "tool:<name>"
	LogErr  string         `json:"log_error,omitempty"`
}

// result describes the run once everything has ended.
func (l *liveRun) result(finished bool, cause error) *Result {
	f, exit, redactor, api := l.stream.Facts(), l.process.Exit, l.redactor, l.gate.Seen()
	answers, partial := f.Answers, redactor.String(strings.TrimSpace(string(f.Partial)))
	if l.reminder > 0 { // the answer to the reminder repeats the one before it
		answers = slices.Delete(slices.Clone(answers), l.reminder, min(l.reminder+1, len(answers)))
	}
	res := &Result{
		Text: redactor.String(strings.Join(answers, "\n\n")), ExitCode: exit.Code, Signal: exit.Signal,
		Stderr: l.stderr.String(), Model: cmp.Or(f.Answered, f.Model), Turns: f.Turns, API: api,
		Session: Session{ID: l.session, Data: l.saved()}, Egress: l.proxy.Report(redactor),
		Instructions: l.spec.instructed(redactor),
		Resources: Resources{
			CPU: exit.CPU, MaxRSS: exit.MaxRSS, Peak: exit.Peak, Disk: l.disk.added.Load(), Swept: exit.Swept,
			Stuck: exit.Stuck, Lines: f.Lines, Raw: f.RawLines, Cut: f.CutLines, Unknown: f.Unknown,
		},
	}
	if api != nil { // tools can forge the CLI's output, so other runs rely on the gateway
		f.RateLimit = nil
		if status, resets, ok := api.UsageLimit(); ok {
			f.RateLimit = &protocol.RateLimit{Status: status, ResetsAt: resets}
		}
	}
	res.Outcome, res.Error = conclude(&f, finished, cause, exit, res.Stderr)
	if e := res.Error; e != nil {
		if api != nil && e.Class == ClassOverloaded && api.Unreachable() {
			e.Message += " (" + api.Problem + ")"
		}
		res.RetryAt = retryAt(e.Class, f.RateLimit, api)
		e.until(res.RetryAt)
		e.Message = redactor.String(e.Message)
	}
	if res.Outcome != Done {
		res.Partial = partial
	} else if res.Text == "" {
		res.Text = partial
	}
	if api != nil {
		api.Problem = redactor.String(api.Problem)
		for name, value := range api.Limits {
			api.Limits[name] = redactor.String(value)
		}
	}
	if f.Last != nil {
		res.StopReason = redactor.String(f.Last.StopReason)
		res.Structured = redactor.JSON(json.RawMessage(f.Structured))
	}
	l.setCost(res, f.Last)
	return res
}

// Class classifies failures by what can be done about them. Each class has a Retry, a sentence for the user and one for
// operators: see classes and docs/errors.md, which lists the same.
type Class string

// The classes of failures.
const (
	ClassCLIMissing Class = "cli_missing"
	ClassCLIVersion Class = "cli_version"
	ClassAuth       Class = "auth"
	ClassBilling    Class = "billing"
	ClassRateLimit  Class = "rate_limit"
	ClassUsageLimit Class = "usage_limit"
	ClassOverloaded Class = "overloaded"
	ClassModel      Class = "model_unavailable"
	ClassContext    Class = "context_too_long"
	ClassRequest    Class = "invalid_request"
	ClassMaxTurns   Class = "max_turns"
	ClassBudget     Class = "budget"
	ClassSchema     Class = "schema"
	ClassRefusal    Class = "refusal"
	ClassSession    Class = "session_not_found"
	ClassConfig     Class = "config"
	ClassStart      Class = "start_failed"
	ClassNoResult   Class = "no_result"
	ClassKilled     Class = "killed"
	ClassOOM        Class = "killed_oom"
	ClassProcesses  Class = "too_many_processes"
	ClassMemory     Class = "too_much_memory"
	ClassDisk       Class = "too_much_disk"
	ClassFrozen     Class = "worker_frozen"
	ClassWorkspace  Class = "workspace"
	ClassInput      Class = "input"
	ClassInternal   Class = "internal"
	ClassUnknown    Class = "unknown"
)

// Retry says whether and how to repeat a failed run. The package itself repeats nothing.
type Retry string

// The ways to repeat a run, from none.
const (
	RetryNever  Retry = "never"         // it would fail again until a person changes something
	RetrySoon   Retry = "soon"          // a few times, after a growing wait of seconds to minutes
	RetryLater  Retry = "later"         // as RetrySoon, but after minutes: the model limits requests
	RetryReset  Retry = "at_reset"      // once Result.RetryAt has passed
	RetryFresh  Retry = "fresh_session" // at once, without Spec.Resume
	RetryResume Retry = "resume_once"   // at once, but only once, with Spec.Resume, so that work is not repeated

	// RetryContinue means at once, with Spec.Resume, however often: neither the run nor its task had a part in its end.
	RetryContinue Retry = "continue"
)

// Retry returns how to repeat a run that failed with this class.
func (c Class) Retry() Retry { return cmp.Or(classes[c].retry, RetryNever) }

// Retry returns how to repeat the run, judging by its end. The caller decides about a run that it stopped.
func (r Result) Retry() Retry {
	switch {
	case r.Error != nil && r.Error.Class.Retry() == RetryNever && !r.RetryAt.IsZero(): // with another credential
		return RetryReset
	case r.Error != nil:
		return r.Error.Class.Retry()
	case r.Outcome == Stalled:
		return RetryResume
	default:
		return RetryNever
	}
}

// Error is a failure, with a sentence for each person who can do something about it.
type Error struct {
	Class   Class  `json:"class"`
	Message string `json:"message"`          // details
	User    string `json:"user"`             // one sentence for the user
	Remedy  string `json:"remedy,omitempty"` // what an operator can do
}

func (e *Error) Error() string { return string(e.Class) + ": " + e.Message }

// NewError returns an Error with the sentences of its class.
func NewError(c Class, message string) *Error {
	return &Error{Class: c, Message: message, User: classes[c].user, Remedy: classes[c].remedy}
}

// soon is the longest wait that "a few minutes" in the sentences of classes covers.
const soon = 15 * time.Minute

// until removes the advice to try again soon from the sentence for the user if the wait is known to be longer.
func (e *Error) until(at time.Time) {
	if statement, _, advised := strings.Cut(e.User, ". "); advised && e.Class.Retry() != RetryNever &&
		time.Until(at) > soon {
		e.User = statement + "."
	}
}

// classes has the properties of each class. TestClassesAreDocumented compares it with docs/errors.md.
var classes = map[Class]struct {
	retry  Retry
	user   string // the meaning for the user, and what they can do
	remedy string // what an operator can do
}{
	ClassCLIMissing: {
		RetryNever,
		"The worker has no Claude Code CLI. An operator must install it (npm ci) or set ERRAND_CLAUDE " +
			"(docs/deploy.md).",
		"Run npm ci with install scripts, or set ERRAND_CLAUDE to the path of the CLI (docs/deploy.md).",
	},
	ClassCLIVersion: {
		RetryNever,
		"The worker's Claude Code CLI is too old. An operator must install the pinned version (npm ci).",
		"Run npm ci, which installs the pinned version.",
	},
	ClassAuth: {
		RetryNever,
		"Authentication failed: the worker is not logged in to the model. " +
			"An operator must set a valid credential, such as ANTHROPIC_API_KEY (docs/models.md).",
		"Set a valid credential (docs/models.md), and check that its account may use the model.",
	},
	ClassBilling: {
		RetryNever,
		"The model account has no credit left. An operator must top it up.",
		"Top up the account, or give it usage credits.",
	},
	ClassRateLimit: {
		RetryLater,
		"Rate limited: the model accepts no more requests at the moment. Try again in a few minutes.",
		"Run fewer agents at once (ERRAND_CONCURRENCY), or raise the account's limit.",
	},
	ClassUsageLimit: {
		RetryReset,
		"The model account has reached its usage limit. Try again after it resets.",
		"Wait for the reset, or raise the plan's limit.",
	},
	ClassOverloaded: {
		RetrySoon,
		"The model could not be reached or is overloaded. Try again in a few minutes.",
		"If it lasts, check the model's status page, ANTHROPIC_BASE_URL, and the network: proxy, firewall, DNS.",
	},
	ClassModel: {
		RetryNever,
		"Model not available to this account. Choose another one.",
		"Set ERRAND_MODEL to a model of the account, or get access to the model in the region; " +
			"if every model is missing, check the region, or ANTHROPIC_BASE_URL.",
	},
	ClassContext: {
		RetryNever,
		"The conversation, with its files, has become too long for the model. Start a new thread.",
		"None: a new thread begins a new conversation.",
	},
	ClassRequest: {
		RetryNever,
		"The model did not accept the request. An operator must check the log.",
		"Read the model's response in the log. Usually a gateway lacks a feature that this CLI uses, or the " +
			"model does not accept a setting.",
	},
	ClassMaxTurns: {
		RetryNever,
		"The agent used up its allowed number of turns.",
		"Raise CLAUDE_CODE_MAX_TURNS, or ask for less at once.",
	},
	ClassBudget: {
		RetryNever,
		"The agent used up its budget for this task.",
		"Raise the budget, or ask for less at once.",
	},
	ClassSchema: {
		RetryNever,
		"The agent did not give its answer in the required form.",
		"Check the schema and the model's attempts in the log; a larger model follows it more often.",
	},
	ClassRefusal: {
		RetryNever,
		"The model declined to work on this. Ask in other words.",
		"None: the log has the message of the model's safeguards.",
	},
	ClassSession: {
		RetryFresh,
		"The earlier conversation could not be continued. Start a new thread.",
		"None: a new conversation can begin.",
	},
	ClassConfig: {
		RetryNever,
		"The Claude Code CLI refused to start. An operator must check the log.",
		"Read the CLI's last words in the log.",
	},
	ClassStart: {
		RetrySoon,
		"The worker could not start the agent. Try again in a few minutes.",
		"Run fewer agents at once (ERRAND_CONCURRENCY), and check the machine's load, memory and process limit.",
	},
	ClassNoResult: {
		RetryResume,
		"The agent ended without giving an answer.",
		"Read the CLI's last words in the error; what it printed is also the partial answer.",
	},
	ClassKilled: {
		RetryResume,
		"The agent was killed from outside.",
		"Find out what sent the signal. Usually one of the agent's tools killed its parent.",
	},
	ClassOOM: {
		RetryResume,
		"The agent was killed because the worker ran out of memory.",
		"Give the worker more memory, or run fewer agents at once (ERRAND_CONCURRENCY).",
	},
	ClassProcesses: {
		RetryNever,
		"The agent was stopped because it started more processes than a run may have. " +
			"Ask for smaller steps, or an operator can raise the limit.",
		"If its tools need so many processes and threads, raise ERRAND_RUN_PROCESSES and the " +
			"limit of the container or unit.",
	},
	ClassMemory: {
		RetryNever,
		"The agent was stopped because its commands used more memory than a run may have. Ask for smaller steps, or " +
			"an operator can raise the limit.",
		"If its tools need so much memory, raise ERRAND_RUN_MEMORY_GB and the limit of the container or unit.",
	},
	ClassDisk: {
		RetryNever,
		"The agent was stopped because its commands added more files to the disk than a run may. " +
			"Ask for smaller steps, or start a new conversation if it happens again at once.",
		"If its tools need so much disk, raise ERRAND_RUN_DISK_GB.",
	},
	ClassFrozen: {
		RetryContinue,
		"The worker was suspended for a while, so its agent was stopped.",
		"Find out what suspended the worker: a suspended machine, SIGSTOP, a debugger, or a lack of memory.",
	},
	ClassWorkspace: {
		RetryNever,
		"The working directory could not be prepared.",
		"Check disk space, permissions and the length of TMPDIR.",
	},
	ClassInput: {
		RetryNever,
		"The agent cannot take this request.",
		"None: the message says what to change.",
	},
	ClassInternal: {
		RetryNever,
		"errand has an internal error. The log has the details.",
		"Read the worker's log; this is a bug in errand.",
	},
	ClassUnknown: {
		RetryNever,
		"The agent failed. The log has the details.",
		"Read the log.",
	},
}
