package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/internal/doctor"
)

// Source is where tasks come from and answers go, as workers see it: in front doors it is a desk.Listener, too. Its
// methods may be called from any goroutine.
type Source interface {
	// Name returns the prefix of the source's threads, which is also part of its task IDs: [a-z]+.
	Name() string
	// Brief checks whether a task may run now and returns what to tell the agent. dir is the thread's directory for
	// files beside the clone. An *InputError refuses the task, an *ErrLater postpones it, and after any other error
	// the worker retries a few times.
	Brief(ctx context.Context, t Task, dir string) (Brief, error)
	// Open returns the task's report. It finds an existing one by a marker in the posted message, or creates one. It
	// works in any process, and goroutines that it starts end with ctx. A run continues even if Open fails.
	Open(ctx context.Context, t Task) (Report, error)
	// Capabilities returns what else the source can do, the same each time.
	Capabilities() Capabilities
}

// Capabilities is what a source can do beyond [Source]. It cannot do what is nil. The functions may be called from any
// goroutine.
type Capabilities struct {
	// Links returns what the task's origin says. It calls no service. The repository is added by the caller.
	Links func(t Task) Links

	// Waits shows the headline in the message that the report will use when the task runs. After an error, it is called
	// again a few times, later and with what is true then.
	Waits func(ctx context.Context, t Task, h Headline) error
	// ShowsWait reports whether Waits shows anything about a task. If not, a long wait is said in its thread. If it is
	// nil, Waits does about all.
	ShowsWait func(t Task) bool

	// Final finds the final message of a task by its marker, if the message is about an ending after the given time:
	// Redis may lose the ending of a task while the thread still has the message. It returns nil if there is no such
	// message. The ending has Kind (if the marker contains it), At and Covers. If the source is rate limited, it
	// returns an *ErrLater.
	Final func(ctx context.Context, t Task, after time.Time) (*Ending, error)

	// Say posts an intermediate message of the agent. It is called again for the same text of a task
	// only after an error. It comes with Ask: without one of them, the agent can do neither.
	Say func(ctx context.Context, t Task, text string) error
	// Ask shows a question to the people who can answer it. They answer with a message in the thread, which
	// Desk.Submit takes for the answer while the question is open, or through Desk.Answer, as the console does. It may
	// be called again for the same question of a task, and finds what it has posted.
	Ask func(ctx context.Context, t Task, q Question) error
	// Talks reports whether the agent can speak with people about a task. If it is nil, it can about all.
	Talks func(t Task) bool
	// Quiet leaves out the confirmation that a live run has absorbed a message.
	Quiet bool
	// Settle replaces a question with q.Answer. It may be called more than once for the same question.
	Settle func(ctx context.Context, t Task, q Question) error
	// ReadThread returns the thread's messages so far for an agent: fenced, with their authors.
	ReadThread func(ctx context.Context, t Task) (string, error)
	// Attach posts a file to the thread. It is called at most once for the same name and content of a task.
	Attach func(ctx context.Context, t Task, name string, data []byte) error

	// Directory returns the resolved path of a local directory if tasks may work in it. The error is a text for people.
	Directory func(path string) (string, error)

	// Reviews has the results of reviews. Front doors call it.
	Reviews Reviewer
	// Inbound returns the time of the last event of the source's service in this front door, zero before the first, and
	// the error that keeps events from arriving.
	Inbound func() (last time.Time, err error)
	// Diagnose reports how the source's service is set up, and whether its events arrive.
	Diagnose func(ctx context.Context) []doctor.Finding
}

// TalkAbout reports whether the agent can speak with people about a task.
func (c Capabilities) TalkAbout(t Task) bool {
	return c.Say != nil && c.Ask != nil && (c.Talks == nil || c.Talks(t))
}

// Links are the pages of other products that a task is about. An empty URL is unknown.
type Links struct {
	Thread      string `json:"thread,omitempty"` // where it was requested
	Repository  string `json:"repository,omitempty"`
	PullRequest string `json:"pull_request,omitempty"` // that it was requested on
}

// Report shows one task in its source.
type Report interface {
	// Update shows what the agent does. The goroutine that reads the agent's output calls it, so it must not block.
	// It may drop what it cannot show.
	Update(e agent.Event)
	// Close posts the final message, also for a task that never ran. It is called until it returns nil, for a day,
	// from any process, and after an *ErrLater not before its time. An *UnpostedError says what is left to do. It
	// finds what an earlier attempt posted by its marker, so that nothing is posted twice. An HTTP request inside takes
	// at most 10 s. It posts nothing if the thread already has a final message of the task for another ending since
	// e.Retried, or if e.Found is set.
	Close(ctx context.Context, e Ending) error
}

// UnpostedError is the error of a Report.Close that says more than that it has to be called again.
type UnpostedError struct {
	Why   string // a clause for people, such as "Slack says not_in_channel"
	Shown bool   // the message is posted; only the status beside it is not up to date
	Final bool   // the place does not exist any more, so that trying again is of no use
	Err   error  // an *ErrLater says when to try again
}

// Error implements error.
func (e *UnpostedError) Error() string { return fmt.Sprintf("%s: %v", e.Why, e.Err) }

// Unwrap returns the error that Err wraps.
func (e *UnpostedError) Unwrap() error { return e.Err }

// ErrNotHere means that another worker has to post a message: this one is not set up for the product where it goes.
var ErrNotHere = errors.New("this worker is not set up for it")

// NoReport is the Report of a source that has no place to post to. The run's events and the ending are in the store,
// where the console, the command line and the API read them.
type NoReport struct{}

// Update does nothing: the worker has stored the event already.
func (NoReport) Update(agent.Event) {}

// Close does nothing: the ending was stored before it is called.
func (NoReport) Close(context.Context, Ending) error { return nil }

// Brief holds what a source adds to a task that is about to run.
type Brief struct {
	Prompt agent.Message   // the first user message; empty: the task's prompt
	System string          // context for the system prompt
	Base   string          // branch whose content is trusted; empty: the repository's configured base
	Into   string          // base branch of the pull request; empty: Base. Work on Into itself needs none
	Fixes  int             // the number of the issue that the published work resolves; 0: none
	Diff   bool            // write base...head to changes.diff in the thread's directory, and tell the agent
	Since  string          // full SHA of an earlier head: write the changes since it, if it still exists, to since.diff
	Keep   bool            // keep the clone as the thread's last run left it
	Fresh  bool            // do not continue the thread's conversation
	Schema json.RawMessage // JSON schema of the answer; nil: free text

	// SecondLook returns a question about the answer, which is in the form of Schema, or nil. Nil: no answer has one.
	SecondLook func(ctx context.Context, answer json.RawMessage) *SecondLook
}

// SecondLook is a question about the answer of a run. A second execution of the CLI answers it, in a new conversation:
// at the same place, with the same rights and within the limits of the first. Its cost is a part of the run's.
type SecondLook struct {
	Doing  string          // what people see meanwhile
	Prompt string          // the first user message; "": nothing is asked, and Merge gets nil
	System string          // context for the system prompt
	Schema json.RawMessage // JSON schema of what it says
	// Merge returns the answer with what the second look says about it. It is nil if the second look failed or could
	// not be made. An error means that the second look has failed.
	Merge func(said json.RawMessage) (json.RawMessage, error)
}

// WriteFile writes a file for the agent to a thread's directory, and returns its path. An agent may have written there
// before: os.Root does not follow links out of the directory.
func WriteFile(dir, name string, data []byte) (path string, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", fmt.Errorf("open directory for files: %w", err)
	}
	defer root.Close()
	_ = root.Remove(name) // of an earlier run, and perhaps a link by now
	if err := root.WriteFile(name, data, 0o600); err != nil {
		return "", fmt.Errorf("write %s: %w", name, err)
	}
	return filepath.Join(dir, name), nil
}

// Absorbed is the kind of event that records that the live run of another task absorbed a message. Among the run's
// events, Text is the message, Tool its author and ToolID the absorbed task. Among the absorbed task's events, ToolID
// is the task whose run it joined.
const Absorbed agent.Kind = "absorbed"

// Notice reports the result of a task elsewhere than where it was requested: of one on a pull request whose repository
// is only watched, or of one that no person asked for.
type Notice struct {
	Task        Task
	Ending      Ending
	Channel     string            // where to post it; empty: where the results of the repository go
	PullRequest forge.PullRequest // groups notices; zero: by the task's thread
	Headline    string            // the result in one line
	Body        string            // the whole result, in Markdown
	Quiet       bool              // nothing is new: it can be left out if the pull request has a notice already
}

// Publisher is the part of a [forge.Forge] that a worker needs.
type Publisher interface {
	Name() string
	Publish(ctx context.Context, p forge.Proposal) (forge.PullRequestRef, error)
	Address(ctx context.Context, repo, login string) (string, error)
}

// FailedEvent is an event that could not be interpreted, or a delivery of a webhook that has failed.
type FailedEvent struct {
	ID       string    `json:"id"`
	Source   string    `json:"source"`
	Kind     string    `json:"kind"` // in the words of the source; of a delivery the webhook's name
	Attempts int       `json:"attempts"`
	Failed   time.Time `json:"failed"` // the last of them
	Problem  string    `json:"problem"`
	Next     time.Time `json:"next,omitzero"` // attempt; zero: none until an operator replays it
}

// Schedule is a series of tasks that errand starts by itself at set times, and what has become of it.
type Schedule struct {
	Name    string        `json:"name"` // [a-z0-9-]
	When    string        `json:"when"` // as in errand.yaml
	Prompt  string        `json:"prompt"`
	Repo    string        `json:"repo,omitempty"`   // owner/name; empty: none
	Branch  string        `json:"branch,omitempty"` // to start from; empty: the repository's base
	Profile agent.Profile `json:"profile,omitempty"`
	MaxUSD  float64       `json:"budget,omitempty"`  // of a task; 0: the fleet's limit
	Results string        `json:"results,omitempty"` // Slack channel for the answers; empty: they are not posted

	Next     time.Time `json:"next,omitzero"`     // zero while it is paused
	Last     time.Time `json:"last,omitzero"`     // the time of the latest task
	Task     string    `json:"task,omitempty"`    // its ID
	Failures int       `json:"failures"`          // in a row
	Problem  string    `json:"problem,omitempty"` // why the latest task was refused
	Paused   time.Time `json:"paused,omitzero"`   // since when; it starts no tasks until an operator resumes it
	Skipped  int       `json:"skipped"`           // times that came while a task had not ended
}
