package agent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent/internal/gateway"
	"github.com/errand-fleet/errand/agent/internal/protocol"
	"github.com/errand-fleet/errand/agent/internal/session"
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
	Text       string          `json:"text,omitempty"`    // the answers of all finished turns, joined, whatever the outcome
	Partial    string          `json:"partial,omitempty"` // the text since the last answer, unless the outcome is Done
	Error      *Error          `json:"error,omitempty"`   // set if and only if Outcome is Failed
	ExitCode   int             `json:"exit_code"`         // of the CLI; -1 if a signal ended it, or if it was not started
	Signal     string          `json:"signal,omitempty"`
	Stderr     string          `json:"stderr,omitempty"`      // its last lines
	Model      string          `json:"model,omitempty"`       // the model that wrote the answer, or else the model of the session
	StopReason string          `json:"stop_reason,omitempty"` // why the model's last message ended, in the API's words, such as max_tokens
	Usage      Usage           `json:"usage"`
	CostUSD    float64         `json:"cost_usd"` // list price of this run, as counted by its gateway; as estimated by the CLI if runs ask the model directly
	Turns      int             `json:"turns"`
	Session    Session         `json:"session"`
	Fresh      bool            `json:"fresh,omitempty"`      // Spec.Resume could not be continued: this is a new conversation, which began with Spec.History
	Structured json.RawMessage `json:"structured,omitempty"` // the answer in the form of Spec.Schema; nil if the agent gave none
	API        *API            `json:"api,omitempty"`        // the traffic between the CLI and the model; nil if runs ask the model directly
	RetryAt    time.Time       `json:"retry_at,omitzero"`    // when to try again, if Error is temporary; zero: unknown
	Resources  Resources       `json:"resources"`
	Started    time.Time       `json:"started"`
	Duration   time.Duration   `json:"duration"`
}

// Session is a conversation as the CLI saves it.
type Session struct {
	ID   string `json:"id"` // UUID
	Data []byte `json:"-"`  // saved by the CLI, packed; at most 8 MiB unless the conversation itself is larger; empty: nothing was saved
	// Total usage of the conversation. The CLI continues counting from here when it resumes, so a run's own share is
	// the difference.
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

// Resources counts what a run used and wrote.
type Resources struct {
	CPU     time.Duration  `json:"cpu"`
	MaxRSS  int64          `json:"max_rss"`           // bytes, of the largest process
	Swept   int            `json:"swept,omitempty"`   // processes that outlived the CLI and were killed
	Stuck   int            `json:"stuck,omitempty"`   // processes that could not be killed (uninterruptible sleep)
	Lines   int64          `json:"lines"`             // of output
	Raw     int64          `json:"raw,omitempty"`     // lines that were not JSON
	Cut     int64          `json:"cut,omitempty"`     // lines too long to decode; logged whole
	Unknown map[string]int `json:"unknown,omitempty"` // kinds of lines, and tools as "tool:<name>", that errand does not know
	LogErr  string         `json:"log_error,omitempty"`
}

// result describes the run once everything has ended.
func (l *liveRun) result(finished bool, cause error) Result {
	f, exit, redactor, api := l.stream.Facts(), l.process.Exit, l.r.cfg.Redactor, l.gate.Seen()
	answers, partial := f.Answers, redactor.String(strings.TrimSpace(string(f.Partial)))
	if l.reminder > 0 { // the answer to the reminder repeats the one before it
		answers = slices.Delete(slices.Clone(answers), l.reminder, min(l.reminder+1, len(answers)))
	}
	res := Result{
		Text: redactor.String(strings.Join(answers, "\n\n")), ExitCode: exit.Code, Signal: exit.Signal, Stderr: l.stderr.String(),
		Model: cmp.Or(f.Answered, f.Model), Turns: f.Turns, API: api,
		Session: Session{ID: l.session, Data: l.dirs.Save(l.session)},
		Resources: Resources{
			CPU: exit.CPU, MaxRSS: exit.MaxRSS, Swept: exit.Swept, Stuck: exit.Stuck,
			Lines: f.Lines, Raw: f.RawLines, Cut: f.CutLines, Unknown: f.Unknown,
		},
	}
	if api != nil { // a tool may write in place of the CLI, so only the gateway's word counts where other runs are concerned
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
	l.setCost(&res, f.Last)
	return res
}
