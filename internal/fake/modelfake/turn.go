package modelfake

import (
	"net/http"
	"time"
)

// Turn is the model's response to one request. The zero Turn is an answer without content: the CLI leaves it out of the
// conversation and asks once more, and gets the same turn.
type Turn struct {
	// Thinking, if any, is streamed first, as a thinking block with a signature.
	Thinking string

	// Text is streamed in small chunks. {{prompt}} is replaced by the prompt, and {{turns}} by the number of prompts in
	// the conversation, which lets a test see that a session was resumed.
	Text string

	// Rest, if set, follows Text in the same message. Only its Thinking and Text are used.
	Rest *Turn

	// Model is the model that the answer names. Empty means the requested one.
	Model string

	// Chunks is Text already cut: each becomes one delta, and Text is ignored.
	Chunks []string

	// Tools are tool_use blocks after the text. The stop reason is then tool_use, and the client comes back with
	// the results for the next turn.
	Tools []ToolCall

	// Stop overrides the stop reason: max_tokens, refusal. Empty means end_turn, or tool_use with Tools.
	Stop string

	// Usage is the usage that the answer reports. The zero value means 100 tokens in, 20 out.
	Usage Usage

	// Pace is the time between two deltas: 0 in tests, a readable speed in the demo.
	Pace time.Duration

	// Started, if set, gets a value when a request for this turn has arrived and is in Requests. The send does not
	// block: use a buffer, or a goroutine that is already receiving.
	Started chan<- struct{}

	// Gate, if set, is received from once before anything is answered. Close it to let every request through, or send
	// to let one through. The wait also ends if the client disconnects or the server is closed.
	Gate <-chan struct{}

	// Hang goes silent, without even a ping, after message_start and the text, until the client disconnects or the
	// server closes. A request without streaming gets nothing.
	Hang bool

	// Cut drops the connection after the text, with no message_stop. A request without streaming is answered in full,
	// because the CLI repeats a broken stream that way.
	Cut bool

	// Status, if not 0, makes this an API error instead of an answer: 401, 429, 529, ... ErrorType defaults to the
	// API's type for that status, Message to ErrorType. Header is added to the response (Retry-After, for example).
	Status             int
	ErrorType, Message string
	Header             http.Header

	// Times limits the error to the first Times requests for this turn; the next ones get the answer, as if the API had
	// recovered. 0 means all of them. Conversations that match the same Answer share the count, which is the only state
	// that the server keeps between requests.
	Times int
}

// ToolCall is one tool call of the model. Input is sent as its JSON; nil means no arguments.
type ToolCall struct {
	Name  string
	Input any
}

// Usage counts tokens.
type Usage struct {
	Input, Output         int
	CacheRead, CacheWrite int
	CacheHour             int // of CacheWrite, for an hour instead of five minutes
	Searches              int // by the model's own tool
}

// Request is one HTTP request as it was received. All fields after Body are empty unless it went to the model.
type Request struct {
	Method, Path string
	Key          string      // x-api-key, or else the bearer token
	Header       http.Header // the header and Body are shared by all copies: read them, do not change them
	Body         []byte

	Text     string   // the prompt: the latest user text, without the CLI's additions and a newline at the end
	Prompts  int      // prompts in the conversation, this one included
	Turn     int      // answers since the prompt: the index of the turn that it gets
	System   string   // the top-level system prompt, its blocks joined by newlines
	Model    string   // as requested
	Stream   bool     // false when the CLI repeats a broken stream
	Messages int      // messages of the conversation, of all roles
	Tools    []string // names of the tools offered, in order
}
