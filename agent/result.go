package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/errand-fleet/errand/agent/internal/gateway"
	"github.com/errand-fleet/errand/agent/internal/session"
)

// Outcome is how a run ended.
type Outcome string

// The outcomes.
const (
	Done    Outcome = "done"    // the agent answered
	Failed  Outcome = "failed"  // Error says why
	Limit   Outcome = "limit"   // stopped at Spec.Limit
	Stalled Outcome = "stalled" // stopped after Spec.IdleLimit without a sign of work
	Stopped Outcome = "stopped" // the caller's context ended; its cause is the caller's own
)

// Causes for which the runner itself ends a run. They travel as context causes, so that the first one wins.
var (
	ErrLimit    = errors.New("run limit reached")
	ErrStalled  = errors.New("no sign of work")
	errHopeless = errors.New("the CLI is retrying what cannot succeed")
	errStart    = errors.New("the CLI did not answer at start")
	errDeaf     = errors.New("the CLI does not take its input")
)

// Result is what a run came to.
type Result struct {
	Outcome    Outcome         `json:"outcome"`
	Text       string          `json:"text,omitempty"`    // the answers of all turns that were finished, joined, whatever the outcome
	Partial    string          `json:"partial,omitempty"` // what had been said since, when the run ended without an answer to that
	Error      *Error          `json:"error,omitempty"`   // set if and only if Outcome is Failed
	ExitCode   int             `json:"exit_code"`         // of the CLI; -1 when a signal ended it, or when it was not started
	Signal     string          `json:"signal,omitempty"`
	Stderr     string          `json:"stderr,omitempty"`      // its last lines
	Model      string          `json:"model,omitempty"`       // the one that wrote the answer; where none did, the one it was to be
	StopReason string          `json:"stop_reason,omitempty"` // why the model's last message ended, in the API's words, such as max_tokens
	Usage      Usage           `json:"usage"`
	CostUSD    float64         `json:"cost_usd"` // list price of this run alone, as its gateway counted it; as the CLI estimates it when runs go direct
	Turns      int             `json:"turns"`
	Session    Session         `json:"session"`
	Fresh      bool            `json:"fresh,omitempty"`      // Spec.Resume could not be continued: this is a new conversation, told of Spec.History
	Structured json.RawMessage `json:"structured,omitempty"` // the object Spec.Schema asked for; nil when the agent gave none
	API        *API            `json:"api,omitempty"`        // what passed between the CLI and the model; nil when runs go direct
	RetryAt    time.Time       `json:"retry_at,omitzero"`    // when to try again, where Error is one that passes; zero: unknown
	Resources  Resources       `json:"resources"`
	Started    time.Time       `json:"started"`
	Duration   time.Duration   `json:"duration"`
}

// Session is a conversation as the CLI saves it.
type Session struct {
	ID   string `json:"id"` // UUID
	Data []byte `json:"-"`  // what the CLI saved, packed, at most 8 MiB unless the conversation itself is larger; empty: nothing
	// What the conversation has used up in all. The CLI counts on from here when it resumes, so a run's own share is the
	// difference.
	CostUSD float64 `json:"cost_usd"`
	Usage   Usage   `json:"usage"`
}

// Holds reports whether the conversation contains something with that ID, such as a message that the CLI has taken up.
func (s Session) Holds(id string) bool {
	a, err := session.Unpack(s.Data)
	return err == nil && a.Holds(id)
}

// Check reads all of Data. Its error says that the conversation cannot be resumed.
func (s Session) Check() error {
	if _, err := session.Unpack(s.Data); err != nil {
		return fmt.Errorf("read session %s: %w", s.ID, err)
	}
	return nil
}

// Usage counts the tokens of a run.
type Usage = gateway.Usage

// API is what the gateway of a run saw of its traffic with the model.
type API = gateway.API

// Credential authenticates runs to the model.
type Credential = gateway.Credential

// Resources is what the operating system counted, and what was noticed about the stream.
type Resources struct {
	CPU     time.Duration  `json:"cpu"`
	MaxRSS  int64          `json:"max_rss"`           // bytes, of the largest process
	Swept   int            `json:"swept,omitempty"`   // processes that had outlived the CLI and were killed
	Stuck   int            `json:"stuck,omitempty"`   // processes that could not be killed (uninterruptible sleep)
	Lines   int64          `json:"lines"`             // of output
	Raw     int64          `json:"raw,omitempty"`     // lines that were not JSON
	Cut     int64          `json:"cut,omitempty"`     // lines too long to decode; logged whole
	Unknown map[string]int `json:"unknown,omitempty"` // kinds of lines, and tools as "tool:<name>", that this version does not know
	LogErr  string         `json:"log_error,omitempty"`
}
