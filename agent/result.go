package agent

import (
	"encoding/json"
	"errors"
	"time"
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
	Text       string          `json:"text,omitempty"`    // the answers of all turns, joined
	Partial    string          `json:"partial,omitempty"` // what had been said when the run ended without an answer
	Error      *Error          `json:"error,omitempty"`   // set if and only if Outcome is Failed
	ExitCode   int             `json:"exit_code"`         // of the CLI; -1 when a signal ended it, or when it was not started
	Signal     string          `json:"signal,omitempty"`
	Stderr     string          `json:"stderr,omitempty"` // its last lines
	Model      string          `json:"model,omitempty"`  // the one that answered first
	Usage      Usage           `json:"usage"`
	CostUSD    float64         `json:"cost_usd"` // list price, as the CLI estimates it, of this run alone
	Turns      int             `json:"turns"`
	Session    Session         `json:"session"`
	Structured json.RawMessage `json:"structured,omitempty"` // the object Spec.Schema asked for; nil when the agent gave none
	Resources  Resources       `json:"resources"`
	Started    time.Time       `json:"started"`
	Duration   time.Duration   `json:"duration"`
}

// Usage counts the tokens of a run.
type Usage struct {
	Input         int64 `json:"input_tokens"`
	Output        int64 `json:"output_tokens"`
	CacheRead     int64 `json:"cache_read_input_tokens"`
	CacheCreation int64 `json:"cache_creation_input_tokens"`
}

func (u Usage) less(v Usage) Usage {
	return Usage{u.Input - v.Input, u.Output - v.Output, u.CacheRead - v.CacheRead, u.CacheCreation - v.CacheCreation}
}

// Resources is what the operating system counted, and what was noticed about the stream.
type Resources struct {
	CPU     time.Duration  `json:"cpu"`
	MaxRSS  int64          `json:"max_rss"`           // bytes, of the largest process
	Swept   int            `json:"swept,omitempty"`   // processes that had outlived the CLI and were killed
	Stuck   int            `json:"stuck,omitempty"`   // processes that could not be killed (uninterruptible sleep)
	Lines   int64          `json:"lines"`             // of output
	Raw     int64          `json:"raw,omitempty"`     // lines that were not JSON
	Cut     int64          `json:"cut,omitempty"`     // lines too long to decode; logged whole
	Unknown map[string]int `json:"unknown,omitempty"` // kinds of lines this version does not know
	LogErr  string         `json:"log_error,omitempty"`
}
