package agent

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// wireLine is one line of the CLI's output, with the fields of every kind of line that this package looks at. It is lean on
// purpose: what is not declared is skipped without being copied, which is what makes megabytes of tool output cheap.
type wireLine struct {
	Type      string `json:"type"`
	Subtype   string `json:"subtype"`
	SessionID string `json:"session_id"`
	Parent    string `json:"parent_tool_use_id"`

	Model      string  `json:"model"`               // system/init
	CLIVersion string  `json:"claude_code_version"` // system/init
	State      string  `json:"state"`               // system/session_state_changed
	Error      string  `json:"error"`               // assistant, system/api_retry
	Attempt    float64 `json:"attempt"`             // system/api_retry
	MaxRetries float64 `json:"max_retries"`         // system/api_retry
	Tool       string  `json:"tool_name"`           // system/permission_denied
	Agent      string  `json:"subagent_type"`       // assistant, user, system/task_*: what kind of sub-agent it was
	Command    string  `json:"command_uuid"`        // command_lifecycle: the message it is about
	Tasks      list    `json:"tasks"`               // system/background_tasks_changed: all that are alive

	Description string `json:"description"`     // system/task_started, task_progress
	Background  bool   `json:"is_backgrounded"` // system/task_started
	Status      string `json:"status"`          // system/task_notification
	Summary     string `json:"summary"`         // system/task_notification

	Servers []wireServer `json:"mcp_servers"` // system/init

	Event   *wireEvent   `json:"event"`   // stream_event
	Message *wireMessage `json:"message"` // assistant, user

	// control lines
	RequestID string         `json:"request_id"`
	Request   *wireRequest   `json:"request"`
	Response  *wireResponse  `json:"response"`
	RateLimit *wireRateLimit `json:"rate_limit_info"`

	wireResult

	odd bool // a field had another shape than expected: only the vital ones below were read
}

// wireVital is what a line means at the least, each field in whatever shape. A failed result that could not be read must not pass for a
// good one, and a question must be answered.
type wireVital struct {
	Type      string         `json:"type"`
	Subtype   string         `json:"subtype"`
	SessionID jsontext.Value `json:"session_id"`
	RequestID jsontext.Value `json:"request_id"`
	IsError   jsontext.Value `json:"is_error"`
	Result    jsontext.Value `json:"result"`
	State     jsontext.Value `json:"state"`
}

// wireResult is what a result line adds. Numbers are floats: some were, in some versions (claude-cli.md §6, api_retry).
type wireResult struct {
	IsError        bool                 `json:"is_error"`
	Result         string               `json:"result"`
	Errors         []string             `json:"errors"`
	NumTurns       float64              `json:"num_turns"`
	CostUSD        float64              `json:"total_cost_usd"`
	APIStatus      float64              `json:"api_error_status"`
	APIError       string               `json:"api_error"`
	TerminalReason string               `json:"terminal_reason"`
	StopReason     string               `json:"stop_reason"`
	StartupFailure string               `json:"startup_failure_reason"`
	Structured     jsontext.Value       `json:"structured_output"`
	ModelUsage     map[string]wireUsage `json:"modelUsage"`
}

type wireUsage struct {
	Input         float64 `json:"inputTokens"`
	Output        float64 `json:"outputTokens"`
	CacheRead     float64 `json:"cacheReadInputTokens"`
	CacheCreation float64 `json:"cacheCreationInputTokens"`
}

// wireEvent is an event of the model's API as it came. A block is told of by its index in the message.
type wireEvent struct {
	Type  string  `json:"type"`
	Index float64 `json:"index"`
	Delta struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		Thinking string `json:"thinking"`
		JSON     string `json:"partial_json"`
	} `json:"delta"`
	Block struct {
		Type string `json:"type"`
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"content_block"`
	Message struct {
		ID string `json:"id"`
	} `json:"message"`
}

// list is the length of an array whose elements do not matter.
type list int

// UnmarshalJSONFrom counts the elements, and takes anything else for none.
func (n *list) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	*n = 0
	if dec.PeekKind() != '[' {
		return dec.SkipValue()
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != ']' {
		if err := dec.SkipValue(); err != nil {
			return err
		}
		*n++
	}
	_, err := dec.ReadToken()
	return err
}

// wireMessage is a message of the API. Some lines of other kinds have a bare string of that name (system/permission_denied).
type wireMessage struct {
	ID      string      `json:"id"`
	Model   string      `json:"model"`
	Content wireContent `json:"content"`
}

// UnmarshalJSONFrom skips what is no object.
func (m *wireMessage) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() != '{' {
		return dec.SkipValue()
	}
	type plain wireMessage
	return json.UnmarshalDecode(dec, (*plain)(m))
}

// wireContent is a list of blocks; the CLI also writes a bare string for one block of text.
type wireContent []wireBlock

type wireBlock struct {
	Type      string         `json:"type"`
	Text      string         `json:"text"`
	Thinking  string         `json:"thinking"`
	ID        string         `json:"id"`
	Name      string         `json:"name"`
	Input     jsontext.Value `json:"input"`
	ToolUseID string         `json:"tool_use_id"`
	Content   excerpt        `json:"content"`
	IsError   bool           `json:"is_error"`
}

// UnmarshalJSONFrom accepts both shapes of content, and nothing for any other.
func (c *wireContent) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	switch dec.PeekKind() {
	case '"':
		var text string
		if err := json.UnmarshalDecode(dec, &text); err != nil {
			return err
		}
		*c = wireContent{{Type: "text", Text: text}}
		return nil
	case '[':
		return json.UnmarshalDecode(dec, (*[]wireBlock)(c))
	default:
		return dec.SkipValue()
	}
}

type wireRequest struct {
	Subtype string         `json:"subtype"`
	Tool    string         `json:"tool_name"`
	Input   jsontext.Value `json:"input"`
	UseID   string         `json:"tool_use_id"`
	Blocked string         `json:"blocked_path"`
	Human   bool           `json:"requires_user_interaction"`
	Server  string         `json:"server_name"` // mcp_message
	Message jsontext.Value `json:"message"`     // mcp_message: JSON-RPC
}

type wireServer struct {
	Name   string `json:"name"`
	Status string `json:"status"`
}

// wireHook is the input of a hook_callback for PreToolUse.
type wireHook struct {
	Tool  string         `json:"tool_name"`
	Input jsontext.Value `json:"tool_input"`
	UseID string         `json:"tool_use_id"`
}

func (r *wireRequest) hook() (h wireHook, err error) {
	err = json.Unmarshal(r.Input, &h, lenient)
	return h, err
}

type wireResponse struct {
	Subtype   string         `json:"subtype"`
	RequestID string         `json:"request_id"`
	Error     string         `json:"error"`
	Response  jsontext.Value `json:"response"`
}

type wireRateLimit struct {
	Status   string  `json:"status"`
	ResetsAt float64 `json:"resetsAt"`
}

// The CLI's own escaping is trusted no further than needed: a tool's output may hold anything.
var lenient = json.JoinOptions(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))

// decode reads one line into l, whatever that was before: a line of output after the other can use the same. ok is false when it is not a
// JSON object with a type.
func (l *wireLine) decode(line []byte) (ok bool) {
	*l = wireLine{}
	if len(line) == 0 || line[0] != '{' {
		return false
	}
	if json.Unmarshal(line, l, lenient) == nil {
		return l.Type != ""
	}
	var v wireVital
	if json.Unmarshal(line, &v, lenient) != nil || v.Type == "" {
		*l = wireLine{}
		return false
	}
	*l = wireLine{Type: v.Type, Subtype: v.Subtype, SessionID: text(v.SessionID), RequestID: text(v.RequestID), State: text(v.State), odd: true}
	l.Result, l.IsError = text(v.Result), v.Type == "result" && string(v.IsError) != "false"
	return true
}

// text is a JSON string's value; empty for anything else.
func text(v jsontext.Value) string {
	var s string
	if v.Kind() != '"' || json.Unmarshal(v, &s, lenient) != nil {
		return ""
	}
	return s
}
