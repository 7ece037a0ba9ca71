package tasks

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/errand-fleet/errand/agent"
)

// Source is where tasks come from and answers go. Its methods may be called from any goroutine; Listen runs at the front door,
// the others on workers.
type Source interface {
	// Name is the prefix of the source's threads and a word of its task IDs: [a-z]+.
	Name() string
	// Listen registers the source's routes on mux and returns; what it starts beside ends with ctx. Events become tasks by
	// d.Submit.
	Listen(ctx context.Context, mux *http.ServeMux, d *Desk) error
	// Brief prepares a task that is about to run: whether it may run now, and what the agent is told. dir is the thread's
	// directory for files beside the clone. An *InputError refuses the task, an *ErrLater lets it wait until then, and any other error
	// lets it be tried again a few times.
	Brief(ctx context.Context, t Task, dir string) (Brief, error)
	// Open finds the task's report, by a marker in what was posted, or begins it. It works in any process, and what it starts
	// ends with ctx. Its failure never fails a run.
	Open(ctx context.Context, t Task) (Report, error)
}

// Waiter is a Source that shows where a task was asked for why it waits.
type Waiter interface {
	// Waits shows it in the place that the report of the task's run takes over. Failing is no failure: it is shown elsewhere as well.
	Waits(ctx context.Context, t Task, text string) error
}

// Recaller is a Source that can find a final message again. Redis may forget that a task has ended: then the thread still has the message.
type Recaller interface {
	// Final finds the final message of a task that tells of an ending after that time, by its marker: nil when there is none. Of the ending it
	// gives Kind, as far as the marker tells, At and Covers. A source that is rate limited gives an *ErrLater.
	Final(ctx context.Context, t Task, after time.Time) (*Ending, error)
}

// Report is one task as its source tells it.
type Report interface {
	// Update tells what the agent does. It is called by the goroutine that reads the agent's output: it must not block, and may
	// drop what it cannot show.
	Update(e agent.Event)
	// Close says the final word, also for what never ran. It is called until it returns nil, in any process (after an *ErrLater
	// not before its time), and finds what an earlier attempt posted by its marker, so that nothing is said twice. An HTTP attempt
	// inside lasts at most 10 s. Where the thread has a final message of the task for another ending since e.Retried, or e is Found, it posts
	// none.
	Close(ctx context.Context, e Ending) error
}

// Brief is what a source adds to a task when it is about to run.
type Brief struct {
	Prompt agent.Message   // the first and only user message; empty: the task's own words
	System string          // context, for the system prompt
	Base   string          // branch whose state counts as trusted; empty: the repository's own setting
	Into   string          // branch that what is published is proposed for; empty: Base. Where it is published itself there is nothing to propose
	Diff   bool            // leave base...head as changes.diff in the thread's directory, and tell the agent
	Since  string          // an earlier head of the same change: leave what is new since then as since.diff, where that can be had; full SHA
	Keep   bool            // go on in the clone as the thread's last run left it
	Fresh  bool            // do not continue the thread's conversation
	Schema json.RawMessage // of the answer; nil: free text
}

// Absorbed is the kind of event that tells of a task whose message goes into the live run of another: among the events of that one, where
// Text is the message, Tool who wrote it and ToolID the task; and among those of the task, where ToolID is whose run it is.
const Absorbed agent.Kind = "absorbed"

// Talker is a Source in whose threads the agent can speak while it works. Its methods are called on workers, from any goroutine.
type Talker interface {
	// Say posts what the agent has to tell on its way. It is called at most once for the same words of a task.
	Say(ctx context.Context, t Task, text string) error
	// Ask shows a question to whoever is to answer it: by a message in the thread, which Desk.Submit takes for the answer while the question
	// is open, or by Desk.Answer, as in the console. It is called at most once for the same question of a task.
	Ask(ctx context.Context, t Task, q Question) error
}

// Selective is a Talker that speaks of some tasks alone.
type Selective interface {
	// Talks reports whether the agent can speak with people about a task.
	Talks(t Task) bool
	// Assures reports whether people are told in words that a live run takes their task into account.
	Assures(t Task) bool
}

// Settler is a Talker that can show in the question's place what became of it.
type Settler interface {
	// Settle shows q.Answer. It may be called again for the same question.
	Settle(ctx context.Context, t Task, q Question) error
}

// ThreadReader is a Talker that can read its thread again.
type ThreadReader interface {
	// ReadThread gives what has been said so far, for an agent: fenced, with authors.
	ReadThread(ctx context.Context, t Task) (string, error)
}

// Attacher is a Talker that can take files.
type Attacher interface {
	// Attach posts a file to the thread. It is called at most once for the same name and content of a task.
	Attach(ctx context.Context, t Task, name string, data []byte) error
}

// Waits marks, as the Tool of a notice among a task's events, why the task waits.
const Waits = "waiting"

// Directories is a source whose tasks may name a local directory.
type Directories interface {
	// Directory gives the real place of one that tasks may work in. The error is for people.
	Directory(path string) (string, error)
}
