// Package tasks is the domain of errand: tasks, the [Desk] through which they come in, the [Source] and [Report]
// interfaces that connect products, endings, limits, budgets and costs. Package tasks/worker runs the tasks; read its
// process.go first. Slack, GitHub and chat are sources in packages of their own.
//
// The package promises that a submitted task is stored once per ID, that it gets exactly one ending, and that it gets a
// delivery even if the submitter dies before it has enqueued the task. It does not promise at-most-once execution: a
// task whose worker died runs again and resumes from its checkpoint, which may be minutes old.
//
// A [Desk] and a [Queue] are safe for concurrent use by any number of processes on one Redis. The comments of [Source]
// and [Report] say which of their methods are called from which goroutine.
package tasks

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/internal/refname"
	"github.com/errand-fleet/errand/internal/untrusted"
	"github.com/errand-fleet/errand/store"
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
	Login   string  `json:"login,omitempty"`   // who asked, on the forge, if the front door knows it; see [Rights]
	Name    string  `json:"name,omitempty"`    // who asked, as the source shows them; empty: as the account
	Channel string  `json:"channel,omitempty"` // where they asked, if the source has channels
	Unasked bool    `json:"unasked,omitempty"` // an event started it, and no person asked; see [Policy.Apart]
	Partial bool    `json:"partial,omitempty"` // asked with a role in some repositories only; see [Asker]
	Prompt  string  `json:"prompt"`            // the request, in their words
	Options Options `json:"options,omitzero"`

	// Pictures that came with the prompt. The record has their names and types; Submit stores the data separately.
	Pictures []Picture `json:"pictures,omitempty"`

	Retrier Asker `json:"-"` // who retried it last; zero: no person did
	Fence   int64 `json:"-"` // of its latest run: later runs have greater ones; 0: it has never run

	Reply *Reply `json:"-"` // set by a source for Submit if the message may be an answer; nil: it is a task

	NotBefore time.Time `json:"not_before,omitzero"` // earliest start; zero: at once

	Trace string `json:"trace,omitempty"` // W3C traceparent of the request's trace, which the task continues; or empty

	Origin json.RawMessage `json:"origin,omitempty"` // the source's return address; only the source reads it
}

// Options are what a task may request besides its prompt. Submit limits duration and cost to the fleet's limits.
type Options struct {
	Model  string        `json:"model,omitempty"`
	Effort string        `json:"effort,omitempty"`
	Agent  string        `json:"agent,omitempty"`   // a named agent of the repository
	MaxUSD float64       `json:"max_usd,omitempty"` // limit on the cost of all its runs; 0: the fleet's
	Limit  time.Duration `json:"limit,omitempty"`   // limit on the duration of a run; 0: the fleet's
	Plan   bool          `json:"plan,omitempty"`    // change nothing: the answer is a plan
}

// maxID keeps an ID usable as a file name and inside a URL.
const maxID = 80

var (
	idForm   = regexp.MustCompile(`^[0-9]{16}-[a-z]+-[a-z0-9.-]+$`)
	idForbid = regexp.MustCompile(`[^a-z0-9.-]+`)
	wordForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:\[\]-]{0,99}$`)
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

// check validates a task before it is stored.
func (t Task) check() error {
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

func tooLong() error { return &InputError{Sentence: "The request is too long: at most 1 MiB of text."} }

// InputError is a mistake of the person who asked. Sentence explains it to them. Retrying does not help.
type InputError struct{ Sentence string }

func (e *InputError) Error() string { return e.Sentence }

// FromForge converts a forge's errors to those of this package. It returns any other error unchanged.
func FromForge(err error) error {
	if refused, ok := errors.AsType[*forge.RefusedError](err); ok {
		return &InputError{Sentence: refused.Sentence}
	}
	if limited, ok := errors.AsType[*forge.LimitError](err); ok {
		return &ErrLater{At: limited.At, Why: limited.Why}
	}
	return err
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

// Title returns the first line of the prompt, shortened.
func (t Task) Title() string {
	line, _, _ := strings.Cut(strings.TrimSpace(t.Prompt), "\n")
	return untrusted.Cut(line, 100)
}

// The names of a run's two logs: the extensions of their files in the log directory, and their names in the store.
const (
	PeopleLog = "log"    // for people
	RawLog    = "ndjson" // the CLI's output lines
	DiffLog   = "diff"   // its Changes; only in the store
)

// ParseBranch checks the name of a branch that a person wrote. The error is an *InputError.
func ParseBranch(name string) (string, error) {
	if !refname.Branch(name) {
		return "", &InputError{Sentence: fmt.Sprintf("%q is not the name of a branch.", name)}
	}
	return name, nil
}

// ParseBudget reads an amount in US dollars that a person wrote, such as 2.50 or $2.50. The error is an *InputError.
func ParseBudget(amount string) (float64, error) {
	usd, err := strconv.ParseFloat(strings.TrimPrefix(amount, "$"), 64)
	if err != nil || !(usd > 0 && usd < 1e6) {
		return 0, &InputError{Sentence: fmt.Sprintf("%q is not a budget. Write it in US dollars, such as 2.50.",
			amount)}
	}
	return usd, nil
}

// ParseTimeout reads a length of time that a person wrote, such as 30m or 2h. The error is an *InputError.
func ParseTimeout(length string) (time.Duration, error) {
	d, err := time.ParseDuration(length)
	if err != nil || d <= 0 {
		return 0, &InputError{Sentence: fmt.Sprintf("%q is not a duration. Write it as 30m or 2h.", length)}
	}
	return d, nil
}

// Choices lists the models and efforts that a task may name. An empty list allows any. A task that names none gets
// the fleet's default.
type Choices struct {
	Models  []string
	Efforts []string
}

// check validates the names in a task's options. They become arguments of the CLI, so it allows only what names of
// models and agents look like.
func (c Choices) check(o Options) error {
	for _, choice := range []struct {
		a, what, name string
		of            []string
	}{{"a", "model", o.Model, c.Models}, {"a", "level of effort", o.Effort, c.Efforts}, {"an", "agent", o.Agent, nil}} {
		switch {
		case choice.name == "":
		case !wordForm.MatchString(choice.name):
			return &InputError{Sentence: fmt.Sprintf("%q is not the name of %s %s.", choice.name,
				choice.a, choice.what)}
		case len(choice.of) > 0 && !slices.Contains(choice.of, choice.name):
			return &InputError{Sentence: fmt.Sprintf("The %s %s is not available here. Choose %s.",
				choice.what, choice.name, strings.Join(choice.of, ", "))}
		}
	}
	return nil
}

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

// savePictures stores the pictures of a task that is about to be submitted.
func (d *Desk) savePictures(ctx context.Context, t Task) error {
	if len(t.Pictures) == 0 {
		return nil
	}
	if len(t.Pictures) > agent.MaxPictures {
		return &InputError{Sentence: fmt.Sprintf("A message has at most %d pictures.", agent.MaxPictures)}
	}
	var data [][]byte
	for _, p := range t.Pictures {
		data = append(data, p.Data)
	}
	err := d.store.Pictures.Save(ctx, t.ID, data)
	if errors.Is(err, store.ErrTooLarge) {
		return &InputError{Sentence: "The pictures of a message have at most 8 MB together."}
	}
	return err
}

// dropPictures removes the pictures again if the task was refused or was an answer. After any other error it keeps
// them, because the sender tries again.
func (d *Desk) dropPictures(ctx context.Context, t Task, r Receipt, err error) {
	_, refused := errors.AsType[*InputError](err)
	if len(t.Pictures) == 0 || !refused && !r.Answered {
		return
	}
	if err := d.store.Pictures.Drop(ctx, t.ID); err != nil {
		d.log.Warn("drop pictures", "run", t.ID, "err", err) // they expire
	}
}
