package modelfake

import (
	"net/http"
	"time"
)

// Turn is what the model does with one request. The zero Turn is an answer without content: the CLI
// leaves it out of the conversation and asks once more, which is served the same turn.
type Turn struct {
	// Thinking, if any, is streamed first, as a thinking block with a signature.
	Thinking string

	// Text is streamed in small chunks. {{prompt}} is replaced by the prompt, {{turns}} by how many prompts the
	// conversation holds, which lets a test see that a session was resumed.
	Text string

	// Rest, if set, follows Text in the same message: its Thinking and Text, and no more of it.
	Rest *Turn

	// Model is what the answer says wrote it. Empty means the model that was asked.
	Model string

	// Chunks is Text already cut: each becomes one delta, and Text is ignored.
	Chunks []string

	// Tools are tool_use blocks after the text. The stop reason is then tool_use, and the client comes back with
	// the results for the next turn.
	Tools []ToolCall

	// Stop overrides the stop reason: max_tokens, refusal. Empty means end_turn, or tool_use with Tools.
	Stop string

	// Usage is what the answer is said to have cost. The zero value stands for 100 tokens in, 20 out.
	Usage Usage

	// Pace is the time between two deltas; 0 in tests, something a person can watch in the demo.
	Pace time.Duration

	// Started, if set, gets a value when a request for this turn has arrived and is in Requests. The send does not
	// block: give it a buffer, or somebody who is already receiving.
	Started chan<- struct{}

	// Gate, if set, is received from once before anything is answered. Close it to let every request through, send
	// to let one. A client that goes away, and Close of the server, end the wait too.
	Gate <-chan struct{}

	// Hang goes silent, without even a ping, after message_start and the text, until the client goes away or the
	// server closes. A request without streaming gets nothing at all.
	Hang bool

	// Cut drops the connection after the text, with no message_stop. A request without streaming is answered whole,
	// because that is how the CLI repeats a stream that broke.
	Cut bool

	// Status, if not 0, makes this an API error instead of an answer: 401, 429, 529, ... ErrorType defaults to what
	// the API says with that status, Message to ErrorType. Header is added to it (Retry-After and the like).
	Status             int
	ErrorType, Message string
	Header             http.Header

	// Times limits the error to the first Times requests for this turn; the next ones get the answer, as if the API
	// had recovered. 0 means all of them. Conversations that match the same Answer share the count, which is the only
	// thing that the server remembers from one request to the next.
	Times int
}

// ToolCall is one tool the model asks for. Input is sent as its JSON; nil stands for no arguments.
type ToolCall struct {
	Name  string
	Input any
}

// Usage is counted in tokens.
type Usage struct {
	Input, Output         int
	CacheRead, CacheWrite int
	CacheHour             int // of CacheWrite, for an hour instead of five minutes
	Searches              int // by the model's own tool
}

// Request is one HTTP request as it was received. Everything below Body is empty unless it went to the model.
type Request struct {
	Method, Path string
	Key          string      // x-api-key, or else the bearer token
	Header       http.Header // it and Body are shared by all copies: read them, do not change them
	Body         []byte

	Text     string   // the prompt: latest user text, without what the CLI adds and a newline at the end
	Prompts  int      // prompts in the conversation, this one included
	Turn     int      // answers the conversation has had since the prompt: the index of the turn it is served
	System   string   // the top-level system prompt, its blocks joined by newlines
	Model    string   // as asked for
	Stream   bool     // false when the CLI repeats a broken stream
	Messages int      // messages of the conversation, of all roles
	Tools    []string // names of the tools offered, in order
}
