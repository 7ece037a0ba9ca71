package agent

// Class sorts failures by what can be done about them.
type Class string

// The classes of failures. docs/errors.md says what each means to an operator.
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
	ClassMaxTurns   Class = "max_turns"
	ClassBudget     Class = "budget"
	ClassRefusal    Class = "refusal"
	ClassSession    Class = "session_not_found"
	ClassConfig     Class = "config"
	ClassNoResult   Class = "no_result"
	ClassKilled     Class = "killed"
	ClassWorkspace  Class = "workspace"
	ClassInput      Class = "input"
	ClassInternal   Class = "internal"
	ClassUnknown    Class = "unknown"
)

// Error is a failure told twice: Message for whoever runs the fleet, User as the one sentence for whoever asked.
type Error struct {
	Class   Class  `json:"class"`
	Message string `json:"message"`
	User    string `json:"user"`
}

func (e *Error) Error() string { return string(e.Class) + ": " + e.Message }

// userSentence says, per class, what the person who asked can do about it.
var userSentence = map[Class]string{
	ClassCLIMissing: "The worker has no Claude Code CLI. An operator must install it (npm ci) or set ERRAND_CLAUDE.",
	ClassCLIVersion: "The worker's Claude Code CLI is too old. An operator must install the pinned version (npm ci).",
	ClassAuth:       "The worker is not logged in to the model. An operator must set a valid ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN or CLAUDE_CODE_OAUTH_TOKEN.",
	ClassBilling:    "The model account has no credit left. An operator must top it up.",
	ClassRateLimit:  "The model is rate limited just now. Try again in a few minutes.",
	ClassUsageLimit: "The model account has reached its usage limit. Try again after it resets.",
	ClassOverloaded: "The model could not be reached or is overloaded. Try again in a few minutes.",
	ClassModel:      "The model is not available to this account. Choose another one.",
	ClassContext:    "The conversation has become too long for the model. Start a new thread.",
	ClassMaxTurns:   "The agent used up its allowed number of turns.",
	ClassBudget:     "The agent used up its budget for this task.",
	ClassRefusal:    "The model declined to work on this.",
	ClassSession:    "The earlier conversation could not be continued. Start a new thread.",
	ClassConfig:     "The Claude Code CLI refused to start. An operator must look at the log.",
	ClassNoResult:   "The agent ended without giving an answer.",
	ClassKilled:     "The agent was killed from outside, perhaps for lack of memory.",
	ClassWorkspace:  "The working directory could not be prepared.",
	ClassInput:      "The request cannot be given to the agent as it stands.",
	ClassInternal:   "Something went wrong inside errand. The log says what.",
	ClassUnknown:    "The agent failed. The log says more.",
}

// NewError makes an Error of a class with that class's sentence for people.
func NewError(c Class, message string) *Error {
	return &Error{Class: c, Message: message, User: userSentence[c]}
}
