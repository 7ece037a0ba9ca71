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
}

// Links are the pages of other products that a task is about. An empty URL is unknown.
type Links struct {
	Thread      string `json:"thread,omitempty"` // where it was requested
	Repository  string `json:"repository,omitempty"`
	PullRequest string `json:"pull_request,omitempty"` // that it was requested on
}

// Linker is a Source that knows where its tasks were requested.
type Linker interface {
	// Links returns what the task's origin says. It calls no service. The repository is added by the caller.
	Links(t Task) Links
}

// Waiter is a Source that shows why a task waits in the place where it was requested.
type Waiter interface {
	// Waits shows the headline in the message that the report will use when the task runs. After an error, it is called
	// again a few times, later and with what is true then.
	Waits(ctx context.Context, t Task, h Headline) error
	// ShowsWait reports whether Waits shows anything about a task. If not, a long wait is said in its thread.
	ShowsWait(t Task) bool
}

// Recaller is a Source that can find a final message again. Redis may lose the ending of a task while the thread
// still has the message.
type Recaller interface {
	// Final finds the final message of a task by its marker, if the message is about an ending after the given time.
	// It returns nil if there is no such message. The ending has Kind (if the marker contains it), At and Covers. If
	// the source is rate limited, it returns an *ErrLater.
	Final(ctx context.Context, t Task, after time.Time) (*Ending, error)
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
	Lines  int             // changed lines of the change that is reviewed; 0: it is no review
	Schema json.RawMessage // JSON schema of the answer; nil: free text
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

// Talker is a Source in whose threads the agent can speak while it works. Its methods are called on workers, from any
// goroutine.
type Talker interface {
	// Say posts an intermediate message of the agent. It is called at most once for the same text of a task.
	Say(ctx context.Context, t Task, text string) error
	// Ask shows a question to the people who can answer it. They answer with a message in the thread, which
	// Desk.Submit takes for the answer while the question is open, or through Desk.Answer, as the console does. It may
	// be called again for the same question of a task, and finds what it has posted.
	Ask(ctx context.Context, t Task, q Question) error
}

// Selective is a Talker that speaks only about some tasks.
type Selective interface {
	// Talks reports whether the agent can speak with people about a task.
	Talks(t Task) bool
	// Assures reports whether to post a confirmation when a live run absorbs the task.
	Assures(t Task) bool
}

// Settler is a Talker that can replace a question with its answer.
type Settler interface {
	// Settle shows q.Answer. It may be called more than once for the same question.
	Settle(ctx context.Context, t Task, q Question) error
}

// ThreadReader is a Talker that can read its thread again.
type ThreadReader interface {
	// ReadThread returns the thread's messages so far for an agent: fenced, with their authors.
	ReadThread(ctx context.Context, t Task) (string, error)
}

// Attacher is a Talker that can post files.
type Attacher interface {
	// Attach posts a file to the thread. It is called at most once for the same name and content of a task.
	Attach(ctx context.Context, t Task, name string, data []byte) error
}

// Waits is the Tool of a notice event that says why a task waits.
const Waits = "waiting"

// Directories is a Source whose tasks may name a local directory.
type Directories interface {
	// Directory returns the resolved path of a directory if tasks may work in it. The error is a text for people.
	Directory(path string) (string, error)
}

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
