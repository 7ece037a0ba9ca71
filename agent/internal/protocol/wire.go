// Package protocol speaks the stream-json protocol of the Claude Code CLI.
//
// A [Stdin] writes the CLI's input. A [Stream] reads its output and reports to a [Handler]. A [Control] sends requests
// to the CLI and answers the CLI's requests. The package decides nothing: it does not know why a run ends, what a
// failure means, or which tools an agent may use.
//
// Reading never waits for a Handler's decisions, and memory is bounded: see [MaxLine]. Every line is logged whole,
// except for pieces of messages, which come again in the line of the whole message. An object of the protocol is
// recognised on a separate line, next to other objects, or at the end of a line of text, but never inside another
// value, which a tool could have written. JSON that the CLI splits over several lines is logged and not understood; it
// never does that.
package protocol

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// outputLine is one line of the CLI's output, with the fields of all kinds of lines that this package reads. Fields
// that are not declared are skipped without being copied, which makes megabytes of tool output cheap.
type outputLine struct {
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
	Agent      string  `json:"subagent_type"`       // assistant, user, system/task_*
	Command    string  `json:"command_uuid"`        // command_lifecycle: the ID of the message
	Tasks      list    `json:"tasks"`               // system/background_tasks_changed: all that are alive

	Description string `json:"description"`     // system/task_started, task_progress
	Background  bool   `json:"is_backgrounded"` // system/task_started
	Status      string `json:"status"`          // system/task_notification
	Summary     string `json:"summary"`         // system/task_notification

	Servers []mcpServer `json:"mcp_servers"` // system/init

	Event   *apiEvent   `json:"event"`   // stream_event
	Message *apiMessage `json:"message"` // assistant, user
	Params  errorParams `json:"api_error_params"`

	// Control lines.
	RequestID string     `json:"request_id"`
	Request   *Request   `json:"request"`
	Response  *response  `json:"response"`
	RateLimit *RateLimit `json:"rate_limit_info"`

	Result

	odd  bool   // a field had another shape than expected, so that only the fields of essentials were read
	line []byte // the line itself, or the beginning of one that is too long; set for handle
}

// errorParams are details of the error in an assistant message.
type errorParams struct {
	Remedy string `json:"remedy"`
}

// Result is what a result line adds. Numbers are floats because some versions wrote fractions.
type Result struct {
	IsError        bool                  `json:"is_error"`
	Text           string                `json:"result"`
	Errors         []string              `json:"errors"`
	NumTurns       float64               `json:"num_turns"`
	CostUSD        float64               `json:"total_cost_usd"`
	APIStatus      float64               `json:"api_error_status"`
	APIError       string                `json:"api_error"`
	TerminalReason string                `json:"terminal_reason"`
	StopReason     string                `json:"stop_reason"`
	StartupFailure string                `json:"startup_failure_reason"`
	Structured     jsontext.Value        `json:"structured_output"`
	ModelUsage     map[string]ModelUsage `json:"modelUsage"`
}

// Said returns the text of a result. It leaves out diagnostics that the CLI writes for its developers.
func (r *Result) Said() string {
	if r.Text != "" || !r.IsError {
		return r.Text
	}
	words := slices.DeleteFunc(slices.Clone(r.Errors), func(s string) bool {
		return strings.HasPrefix(s, "[ede_diagnostic]")
	})
	return cmp.Or(strings.Join(words, "; "), "the CLI gave no reason")
}

// Interrupted reports whether the turn was ended from outside.
func (r *Result) Interrupted() bool {
	return r.IsError && (r.TerminalReason == "aborted_streaming" || r.TerminalReason == "aborted_tools")
}

// ModelUsage counts the tokens of one model.
type ModelUsage struct {
	Input         float64 `json:"inputTokens"`
	Output        float64 `json:"outputTokens"`
	CacheRead     float64 `json:"cacheReadInputTokens"`
	CacheCreation float64 `json:"cacheCreationInputTokens"`
}

// apiEvent is an event of the model's API, forwarded by the CLI. Index identifies a block of the message.
type apiEvent struct {
	Type  string  `json:"type"`
	Index float64 `json:"index"`
	Delta struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		Thinking string `json:"thinking"`
		JSON     string `json:"partial_json"`

		StopReason string `json:"stop_reason"` // message_delta
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

// list is the length of an array whose elements are not needed.
type list int

// UnmarshalJSONFrom counts the elements. Anything but an array has none.
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

// apiMessage is a message of the model's API. Other kinds of lines use the same field for a string
// (system/permission_denied).
type apiMessage struct {
	ID      string  `json:"id"`
	Model   string  `json:"model"`
	Content content `json:"content"`

	StopReason string `json:"stop_reason"`
}

// UnmarshalJSONFrom skips anything but an object.
func (m *apiMessage) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() != '{' {
		return dec.SkipValue()
	}
	type plain apiMessage
	return json.UnmarshalDecode(dec, (*plain)(m))
}

// content is a list of blocks. The CLI also writes a bare string for one block of text.
type content []contentBlock

type contentBlock struct {
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

// UnmarshalJSONFrom accepts both shapes and skips any other.
func (c *content) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	switch dec.PeekKind() {
	case '"':
		var text string
		if err := json.UnmarshalDecode(dec, &text); err != nil {
			return err
		}
		*c = content{{Type: "text", Text: text}}
		return nil
	case '[':
		return json.UnmarshalDecode(dec, (*[]contentBlock)(c))
	default:
		return dec.SkipValue()
	}
}

// excerpt is the beginning of a tool's output, as text: somewhat more than is shown of it. The rest, which is most of
// what a run reads, is neither copied nor decoded.
type excerpt []byte

// excerptBytes of JSON have at least maxPreview characters: a character has at most two escapes of six bytes.
const excerptBytes = 12 * maxPreview

// UnmarshalJSONFrom accepts a string, or a list of blocks as in a message. Anything else has no text.
func (e *excerpt) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	v, err := dec.ReadValue()
	*e = excerptOf(v)
	return err
}

func excerptOf(v jsontext.Value) excerpt {
	switch v.Kind() {
	case '"':
		text, _ := jsontext.AppendUnquote(nil, v[:min(len(v), excerptBytes/2)]) // decodes truncated strings, too
		if len(text) < 5*maxPreview && len(v) > excerptBytes/2 {                // Redactor.Head reads 4*maxPreview
			text, _ = jsontext.AppendUnquote(nil, v[:min(len(v), excerptBytes)])
		}
		return text
	case '[':
		var blocks []struct {
			Type string  `json:"type"`
			Text excerpt `json:"text"`
		}
		_ = json.Unmarshal(v, &blocks, lenient) // anything but a block ends the list
		var parts [][]byte
		for _, b := range blocks {
			if b.Type == "text" {
				parts = append(parts, b.Text)
			} else {
				parts = append(parts, []byte("["+b.Type+"]"))
			}
		}
		return bytes.Join(parts, []byte("\n"))
	default:
		return nil
	}
}

// Request is a control request of the CLI.
type Request struct {
	Subtype string         `json:"subtype"`
	Tool    string         `json:"tool_name"`
	Input   jsontext.Value `json:"input"`
	UseID   string         `json:"tool_use_id"`
	Blocked string         `json:"blocked_path"`
	Human   bool           `json:"requires_user_interaction"`
	Server  string         `json:"server_name"` // mcp_message
	Message jsontext.Value `json:"message"`     // mcp_message: JSON-RPC; elicitation: a text

	Asker  string         `json:"mcp_server_name"`  // elicitation
	URL    string         `json:"url"`              // elicitation: what the person should open
	Schema jsontext.Value `json:"requested_schema"` // elicitation: of the answer
	Order  []string       `json:"property_order"`   // elicitation: the names in Schema
}

// SkillShell is the event of a hook_callback about a shell command in the text of a skill or command.
const SkillShell = "PreSkillShellCommand"

// HookInput is the input of a hook_callback.
type HookInput struct {
	Event   string         `json:"hook_event_name"`
	Agent   string         `json:"agent_id"` // of the sub-agent; empty: the main agent
	Tool    string         `json:"tool_name"`
	Input   jsontext.Value `json:"tool_input"`
	UseID   string         `json:"tool_use_id"`
	Command string         `json:"command_name"` // SkillShell: the skill or command
}

// Hook decodes the input of a hook_callback.
func (r *Request) Hook() (h HookInput, err error) {
	err = json.Unmarshal(r.Input, &h, lenient)
	return h, err
}

type response struct {
	Subtype   string         `json:"subtype"`
	RequestID string         `json:"request_id"`
	Error     string         `json:"error"`
	Response  jsontext.Value `json:"response"`
}

// RateLimit is the state of the account's usage limit.
type RateLimit struct {
	Status   string  `json:"status"`
	ResetsAt float64 `json:"resetsAt"` // Unix seconds
}

type mcpServer struct {
	Name   string `json:"name"`
	Status string `json:"status"`
}

// lenient accepts what a tool's output can put into the CLI's JSON.
var lenient = json.JoinOptions(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))

// essentials are the fields of a line that are read even if others have an unexpected shape. A failed result that
// cannot be read must not pass for a success, and a question must be answered.
type essentials struct {
	Type      string         `json:"type"`
	Subtype   string         `json:"subtype"`
	SessionID jsontext.Value `json:"session_id"`
	RequestID jsontext.Value `json:"request_id"`
	IsError   jsontext.Value `json:"is_error"`
	Result    jsontext.Value `json:"result"`
	State     jsontext.Value `json:"state"`
}

// decode reads one line into l and overwrites all of it. It returns false unless the line is a JSON object with a type.
func (l *outputLine) decode(line []byte) (ok bool) {
	*l = outputLine{}
	if len(line) == 0 || line[0] != '{' {
		return false
	}
	if json.Unmarshal(line, l, lenient) == nil {
		return l.Type != ""
	}
	*l = outputLine{}
	var v essentials
	if json.Unmarshal(line, &v, lenient) != nil || v.Type == "" {
		return false
	}
	l.Type, l.Subtype, l.SessionID, l.RequestID = v.Type, v.Subtype, stringValue(v.SessionID), stringValue(v.RequestID)
	l.State, l.Text, l.odd = stringValue(v.State), stringValue(v.Result), true
	l.IsError = v.Type == "result" && string(v.IsError) != "false"
	return true
}

// stringValue returns the value of a JSON string, and an empty string for anything else.
func stringValue(v jsontext.Value) string {
	var s string
	if v.Kind() != '"' || json.Unmarshal(v, &s, lenient) != nil {
		return ""
	}
	return s
}

// errorWords returns what a line of type error says: its message, that of its error as in the model's API, or the whole
// line.
func errorWords(line []byte) string {
	var v struct {
		Message jsontext.Value `json:"message"`
		Error   jsontext.Value `json:"error"`
	}
	if json.Unmarshal(line, &v, lenient) != nil {
		return string(line)
	}
	words := cmp.Or(stringValue(v.Message), stringValue(v.Error))
	if words == "" && v.Error.Kind() == '{' {
		return errorWords(v.Error)
	}
	return cmp.Or(words, string(line))
}

// decodeHead reads the beginning of a line: the fields before the one that makes it too long. It returns false unless
// the type is among them; the CLI writes the type and the ID of a request first. A result whose is_error is missing
// counts as a failure.
func decodeHead(text []byte) (l outputLine, ok bool) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(text), lenient) // reads a Buffer in place
	if t, err := dec.ReadToken(); err != nil || t.Kind() != '{' {
		return l, false
	}
	end, judged := dec.InputOffset(), false
	for {
		name, err := dec.ReadToken()
		if err != nil || name.Kind() != '"' {
			break
		}
		known := name.String() == "is_error"
		if dec.SkipValue() != nil {
			break
		}
		end, judged = dec.InputOffset(), judged || known
	}
	ok = l.decode(append(bytes.Clone(text[:end]), '}'))
	l.IsError = l.IsError || l.Type == "result" && !judged
	return l, ok
}
