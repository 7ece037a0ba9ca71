// Package tasks has the words of errand: what a task is, how it ends, what people are shown of it, and the [Source] and
// [Report] interfaces that connect products. It stores nothing and starts nothing. Tasks come in through the desk
// (tasks/desk), are delivered by a queue (tasks/queue) and run by workers (tasks/worker; read its process.go first).
// Slack, GitHub and chat are sources in packages of their own.
//
// The comments of [Source] and [Report] say which of their methods are called from which goroutine.
package tasks

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/tasks/internal/format"
)

// The classes of tasks, from the most to the least urgent. Each has its own queue.
const (
	Interactive = "interactive" // a person waits for the answer
	Review      = "review"      // requested by an event
	Background  = "background"
	Maintenance = "maintenance"
)

// Classes lists the classes in that order.
var Classes = []string{Interactive, Review, Background, Maintenance}

// Task is one request. Submit stores it as JSON; only Amend changes it afterwards.
type Task struct {
	ID      string        `json:"id"`     // see NewID
	Source  string        `json:"source"` // name of the Source that briefs and reports it
	Kind    string        `json:"kind"`   // the source's word for the kind of work, such as "mention"
	Thread  string        `json:"thread"` // tasks of one thread run one at a time
	Class   string        `json:"class"`
	Profile agent.Profile `json:"profile"`

	// Where the agent works: a repository or a local directory below ERRAND_DIRS. If both are empty, it works in a
	// scratch directory.
	Repo string `json:"repo,omitempty"` // owner/name
	Ref  string `json:"ref,omitempty"`  // branch, tag or commit; empty: the default branch
	Dir  string `json:"dir,omitempty"`
	// Also has further repositories. Each starts at its base branch, and gets its own clone and pull request.
	Also []string `json:"repos,omitempty"`

	Actor   string  `json:"actor"`             // who asked: their account in the source
	Login   string  `json:"login,omitempty"`   // who asked, on the forge, if the front door knows it; see rights.ForgeRights
	Name    string  `json:"name,omitempty"`    // who asked, as the source shows them; empty: as the account
	Channel string  `json:"channel,omitempty"` // where they asked, if the source has channels
	Unasked bool    `json:"unasked,omitempty"` // an event started it, and no person asked; see rights.Policy.Apart
	Partial bool    `json:"partial,omitempty"` // asked with a role in some repositories only; see [Asker]
	Prompt  string  `json:"prompt"`            // the request, in their words
	Options Options `json:"options,omitzero"`

	// Pictures that came with the prompt. The record has their names and types; Submit stores the data separately.
	Pictures []Picture `json:"pictures,omitempty"`

	Retrier Asker `json:"-"` // who retried it last; zero: no person did
	Fence   int64 `json:"-"` // of its latest run: later runs have greater ones; 0: it has never run

	Reply *Reply `json:"-"` // set by a source for Submit if the message may be an answer; nil: it is a task

	// Unattended is set by a source for Submit if no person hears what that returns: a budget that is used up then
	// refuses the task not there but at its turn, in its ending.
	Unattended bool `json:"-"`

	NotBefore time.Time `json:"not_before,omitzero"` // earliest start; zero: at once

	Trace string `json:"trace,omitempty"` // W3C traceparent of the request's trace, which the task continues; or empty

	Origin json.RawMessage `json:"origin,omitempty"` // the source's return address; only the source reads it
}

// Options are what a task may request besides its prompt. Submit limits duration and cost to the fleet's limits.
type Options struct {
	Model  string `json:"model,omitempty"`
	Effort string `json:"effort,omitempty"`
	// Directory is the one of Repo in which the agent starts; "." is the root, and empty leaves it to others.
	Directory string        `json:"directory,omitempty"`
	Agent     string        `json:"agent,omitempty"`   // a named agent of the repository
	MaxUSD    float64       `json:"max_usd,omitempty"` // limit on the cost of all its runs; 0: the fleet's
	Limit     time.Duration `json:"limit,omitempty"`   // limit on the duration of a run; 0: the fleet's
	Plan      bool          `json:"plan,omitempty"`    // change nothing: the answer is a plan
}

// maxID keeps an ID usable as a file name and inside a URL.
const maxID = 80

var (
	idForm   = regexp.MustCompile(`^[0-9]{16}-[a-z]+-[a-z0-9.-]+$`)
	idForbid = regexp.MustCompile(`[^a-z0-9.-]+`)
)

// NewID returns a task's ID. It depends only on the event, so that a redelivered event gets the same ID. IDs sort by
// time, which is also the order of a thread. identity makes the event unique within its source; characters outside
// [a-z0-9.-] become dashes.
func NewID(at time.Time, source, identity string) string {
	id := fmt.Sprintf("%016d-%s-%s", at.UnixMicro(), source, idForbid.ReplaceAllString(strings.ToLower(identity), "-"))
	return id[:min(len(id), maxID)]
}

// ValidID reports whether s has the form of a task's ID. Reject anything else in a URL or on a command line.
func ValidID(s string) bool { return len(s) <= maxID && idForm.MatchString(s) }

// TraceID returns the ID of the trace of a task that continues no other one (docs/operations.md).
func TraceID(id string) (trace [16]byte) {
	sum := sha256.Sum256([]byte(id))
	copy(trace[:], sum[:])
	return trace
}

// Born returns the time of the event that an ID was made from; zero if s is not an ID.
func Born(id string) time.Time {
	micros, err := strconv.ParseInt(id[:max(0, strings.IndexByte(id, '-'))], 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMicro(micros)
}

// Check validates a task before it is stored. The error is an *InputError.
func (t Task) Check() error {
	bad := func(format string, args ...any) error {
		return &InputError{Sentence: fmt.Sprintf(format, args...)}
	}
	switch {
	case !ValidID(t.ID):
		return bad("Task ID %q is not of the form <unix micros>-<source>-<identity>.", t.ID)
	case t.Source == "" || t.Thread == "":
		return bad("A task needs a source and a thread.")
	case strings.TrimSpace(t.Prompt) == "":
		return bad("The request is empty. Say what to do.")
	case t.Repo != "" && t.Dir != "":
		return bad("Name either a repository or a directory, not both.")
	}
	if err := agent.CheckPrompt(t.Prompt); err != nil {
		return bad("%s.", err)
	}
	return nil
}

// MergeKey returns a key that two tasks of a thread share if the run of one may absorb the other; empty if the task
// is never absorbed. Only interactive tasks are: automatic work is about one thing.
func MergeKey(t Task) string {
	if t.Class != Interactive {
		return ""
	}
	return format.Hash(append([]string{
		t.Source, string(t.Profile), t.Repo, t.Ref, t.Dir, string(format.JSON(t.Options)),
	}, t.Also...)...)
}

// Title returns the first line of the prompt, shortened, safe to show and with a capital; see [display.Line] and
// [display.Capital].
func (t Task) Title() string { return t.headline(display.Line) }

// Subject returns the title for a commit and a pull request. Invisible characters are left out of it rather than
// spelled out: phones put marks of direction around names.
func (t Task) Subject() string {
	return t.headline(func(line string) string { return display.Line(display.Words(display.Plain(line))) })
}

// headline returns the first line of the prompt that is not empty once it is clean.
func (t Task) headline(clean func(line string) string) string {
	for line := range strings.Lines(strings.TrimSpace(t.Prompt)) {
		if line = clean(line); line != "" {
			return display.Capital(untrusted.Cut(line, maxTitle))
		}
	}
	return ""
}

// maxTitle bounds a task's title, in characters.
const maxTitle = 100

// The names of a run's two logs: the extensions of their files in the log directory, and their names in the store. What
// else is kept of a run is beside them there.
const (
	PeopleLog = "log"    // for people
	RawLog    = "ndjson" // the CLI's output lines
	DiffLog   = "diff"   // its Changes; only in the store
	FileLogs  = "file/"  // precedes the name of a file that the agent has attached; only in the store
)

// Picture is an image that came with a prompt.
type Picture struct {
	Name string `json:"name"` // file name
	Type string `json:"type"` // see agent.PictureType
	Data []byte `json:"-"`    // set by a source for Submit
}

// NewPicture checks an image that a person sent. An *InputError says why it cannot be used.
func NewPicture(name string, data []byte) (Picture, error) {
	kind := agent.PictureType(data)
	if kind == "" {
		return Picture{},
			&InputError{Sentence: fmt.Sprintf("%q cannot be shown to the model: send a whole PNG, JPEG or GIF image "+
				"of at most 50 megapixels and 20 MB.", name)}
	}
	return Picture{Name: name, Type: kind, Data: data}, nil
}

// Edited returns the ID of the task for an edit. In the order of the thread it comes right after the task that it
// edits.
func Edited(id, edit string) string {
	id += "-edit-" + idForbid.ReplaceAllString(edit, "-")
	return id[:min(len(id), maxID)]
}

// SourceOf returns the source in a task's ID.
func SourceOf(id string) string {
	_, rest, _ := strings.Cut(id, "-")
	source, _, _ := strings.Cut(rest, "-")
	return source
}

// Repositories returns all repositories of a task, the main one first; nil if it has none.
func (t Task) Repositories() []string {
	if t.Repo == "" {
		return nil
	}
	return t.Places()
}

// Places returns the repositories of a task like Repositories, and "" for work without one.
func (t Task) Places() []string { return append([]string{t.Repo}, t.Also...) }

// Has reports whether a repository is one of the task's; "" is that of a task without one.
func (t Task) Has(repo string) bool {
	return strings.EqualFold(repo, t.Repo) || slices.ContainsFunc(t.Also, func(one string) bool {
		return strings.EqualFold(one, repo)
	})
}

// Asker is who asks for something: an account in a source.
type Asker struct {
	Source  string `json:"source"`
	Account string `json:"account"`
	Login   string `json:"login,omitempty"` // on the forge, if the front door knows it
	ID      int64  `json:"-"`               // that Login's account had when the person linked it; 0: no link is in use
	// Partial means that their role at the front door holds in some repositories only, and that Login does not say
	// what they may do elsewhere.
	Partial bool `json:"partial,omitempty"`
}

// AskedBy returns who asked for a task: the person who retried it, or its author.
func (t Task) AskedBy() Asker {
	if t.Retrier != (Asker{}) {
		return t.Retrier
	}
	return Asker{Source: t.Source, Account: t.Actor, Login: t.Login, Partial: t.Partial}
}
