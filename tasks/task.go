package tasks

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/tasks/internal/format"
)

// The classes of tasks, each a queue of its own, from the most to the least urgent.
const (
	Interactive = "interactive" // somebody waits for the answer
	Review      = "review"      // an event asked for it
	Background  = "background"
	Maintenance = "maintenance"
)

// Classes lists them in that order.
var Classes = []string{Interactive, Review, Background, Maintenance}

// Task is what somebody asked for. It is written once, at Submit, and stored as JSON.
type Task struct {
	ID      string        `json:"id"`     // see NewID
	Source  string        `json:"source"` // by whose Source it is briefed and reported
	Kind    string        `json:"kind"`   // the source's own word for the sort of work, such as "mention"
	Thread  string        `json:"thread"` // tasks of one thread run one after the other
	Class   string        `json:"class"`
	Profile agent.Profile `json:"profile"`

	// Where the agent works: a repository, or a local directory below ERRAND_DIRS; neither means a scratch directory.
	Repo string `json:"repo,omitempty"` // owner/name
	Ref  string `json:"ref,omitempty"`  // branch, tag or commit; empty: the default branch
	Dir  string `json:"dir,omitempty"`

	Actor   string  `json:"actor"`             // who asked, as the source calls them
	Channel string  `json:"channel,omitempty"` // where, if the source has places that many people share
	Prompt  string  `json:"prompt"`            // their own words
	Options Options `json:"options,omitzero"`

	// Pictures that came with the prompt. The record has their names and types; Submit stores the data beside it.
	Pictures []Picture `json:"pictures,omitempty"`

	Reply *Reply `json:"-"` // between a source and Submit: the message may be an answer; nil: it is a task

	NotBefore time.Time `json:"not_before,omitzero"` // when to start it at the earliest; zero: at once

	Origin json.RawMessage `json:"origin,omitempty"` // the source's return address, opaque to everyone else
}

// Options is what a task may ask for besides its prompt. Submit holds limit and cost to those of the fleet.
type Options struct {
	Model  string        `json:"model,omitempty"`
	Effort string        `json:"effort,omitempty"`
	Agent  string        `json:"agent,omitempty"`   // a named agent of the project
	MaxUSD float64       `json:"max_usd,omitempty"` // of all its runs; 0: the fleet's
	Limit  time.Duration `json:"limit,omitempty"`   // of the run; 0: the fleet's
	Plan   bool          `json:"plan,omitempty"`    // nothing is changed: the answer is what would be done
}

// maxID keeps an ID usable as a file name and inside a URL.
const maxID = 80

var (
	idForm   = regexp.MustCompile(`^[0-9]{16}-[a-z]+-[a-z0-9.-]+$`)
	idForbid = regexp.MustCompile(`[^a-z0-9.-]+`)
	wordForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:\[\]-]{0,99}$`)
)

// NewID makes a task's ID from the event alone, so that a redelivered event makes the same one. IDs sort by time, which is also
// the order of a thread. identity is what makes the event unique within its source; characters outside [a-z0-9.-] become dashes.
func NewID(at time.Time, source, identity string) string {
	id := fmt.Sprintf("%016d-%s-%s", at.UnixMicro(), source, idForbid.ReplaceAllString(strings.ToLower(identity), "-"))
	return id[:min(len(id), maxID)]
}

// ValidID reports whether s has the form of a task's ID; anything else in a URL or a command line is a mistake or an attack.
func ValidID(s string) bool { return len(s) <= maxID && idForm.MatchString(s) }

// Born is when the event came that an ID was made of; zero for what is no ID.
func Born(id string) time.Time {
	micros, err := strconv.ParseInt(id[:max(0, strings.IndexByte(id, '-'))], 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMicro(micros)
}

// check finds what is wrong with a task before it is stored.
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
		return bad("The request is empty: say what to do.")
	case t.Repo != "" && t.Dir != "":
		return bad("Name either a repository or a directory, not both.")
	}
	if err := agent.CheckPrompt(t.Prompt); err != nil {
		return bad("%s.", err)
	}
	// These end up in the CLI's argument list, so they are held to what names of models and agents look like.
	for _, o := range [...]struct{ what, word string }{{"a model", t.Options.Model}, {"a level of effort", t.Options.Effort}, {"an agent", t.Options.Agent}} {
		if o.word != "" && !wordForm.MatchString(o.word) {
			return bad("%q is not the name of %s.", o.word, o.what)
		}
	}
	return nil
}

func tooLong() error { return &InputError{Sentence: "The request is too long: at most 1 MiB of text."} }

// InputError is a mistake of whoever asked, told in one sentence for them. Trying again does not help.
type InputError struct{ Sentence string }

func (e *InputError) Error() string { return e.Sentence }

// FromForge turns a forge's errors into those of this package; any other error is returned as it is.
func FromForge(err error) error {
	if refused, ok := errors.AsType[*forge.RefusedError](err); ok {
		return &InputError{Sentence: refused.Sentence}
	}
	if limited, ok := errors.AsType[*forge.LimitError](err); ok {
		return &ErrLater{At: limited.At, Why: limited.Why}
	}
	return err
}

// MergeKey is what two tasks of a thread have in common if the run of one may absorb the other; empty for what is never absorbed. Only what
// people wait for is: automatic work is about one thing.
func MergeKey(t Task) string {
	if t.Class != Interactive {
		return ""
	}
	return format.Hash(t.Source, string(t.Profile), t.Repo, t.Ref, t.Dir, string(format.JSON(t.Options)))
}

// Title is the task's prompt in one short line.
func (t Task) Title() string {
	line, _, _ := strings.Cut(strings.TrimSpace(t.Prompt), "\n")
	if r := []rune(line); len(r) > 100 {
		return string(r[:99]) + "…"
	}
	return line
}

// The names of a run's two logs: of their files in the log directory after "<id>.", and in the store.
const (
	PeopleLog = "log"    // for people
	RawLog    = "ndjson" // the CLI's own lines
)
