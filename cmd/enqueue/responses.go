package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/errand-fleet/errand/internal/display"
)

// What follows is the API's JSON (web/api/openapi.yaml) as far as commands show it.

// task is a task.
type task struct {
	Task struct {
		ID, Source, Name, Actor, Thread, Class, Repo, Dir, Prompt string
		Also                                                      []string // further repositories
	}
	Person    string
	State     string // waiting, running, absorbed, ended
	Into      string // the task whose run absorbed this one
	Pool      string
	Position  int
	Worker    string
	Created   time.Time
	Started   time.Time
	Ended     time.Time
	At        time.Time `json:"not_before"`
	Why       string    // it waits
	Unposted  string    // why people do not have the answer in its place
	Cancelled string    `json:"cancelled_by"`
	Questions []question
	Ending    *ending
	Title     string
	Sentence  string   // how it ended
	Footer    string   // its run in a line
	Notes     []string // what was published
	Review    string   // the result of a review
}

// ending is how a task ended.
type ending struct {
	Kind   string
	Result struct {
		Text, Partial string
		Structured    json.RawMessage
		Cost          float64 `json:"cost_usd"`
	}
	Bill struct {
		Earlier float64 `json:"earlier_usd"`
	}
}

// cost returns what the runs of the task have cost.
func (e *ending) cost() float64 { return e.Result.Cost + e.Bill.Earlier }

// taskPage is the response of GET /api/tasks.
type taskPage struct {
	Tasks []task
	Next  string
}

// UnmarshalJSON refuses what is no list of tasks: another server answers as well.
func (p *taskPage) UnmarshalJSON(b []byte) error {
	type plain taskPage
	if err := json.Unmarshal(b, (*plain)(p)); err != nil {
		return err
	}
	if p.Tasks == nil {
		return errors.New("it has no tasks")
	}
	return nil
}

// name returns the name of the person who asked for the task.
func (t task) name() string { return cmp.Or(t.Person, t.Task.Name, t.Task.Actor) }

// said returns what the agent said, complete and incomplete.
func (t task) said() string {
	r := t.Ending.Result
	if t.Ending.Kind == "answered" {
		r.Partial = ""
	}
	return strings.TrimSpace(strings.TrimSpace(r.Text) + "\n\n" + strings.TrimSpace(r.Partial))
}

// answer returns a task's answer for people: a review in words, other JSON indented, and anything else as it is. It is
// safe to print.
func (t task) answer() string { return display.Text(cmp.Or(t.Review, indentJSON(t.said()))) }

// comment returns a sentence about how the task ended, unless its answer in the form of a schema says it all.
func (t task) comment() string {
	if t.Ending != nil && len(t.Ending.Result.Structured) > 0 {
		return ""
	}
	return t.Sentence
}

// state returns the task's state or ending in one word.
func (t task) state() string {
	switch {
	case t.Ending == nil && t.Cancelled != "" && (t.State == "running" || t.Into != ""):
		return "stopping"
	case t.Ending == nil:
		return t.State
	}
	return cmp.Or(t.Ending.Kind, t.State)
}

// question is a question of the agent.
type question struct {
	Key, Text string
	Options   []string
}

// event is an event of a run. docs/chat.md lists the kinds.
type event struct {
	Time    time.Time
	Kind    string
	Text    string
	Tool    string
	ToolID  string `json:"tool_id"`
	Input   json.RawMessage
	Error   bool
	Parent  string // the tool use that started the sub-agent
	Usage   usage
	CostUSD float64 `json:"cost_usd"`
}

// usage counts tokens.
type usage struct {
	Input         int64 `json:"input_tokens"`
	Output        int64 `json:"output_tokens"`
	CacheRead     int64 `json:"cache_read_input_tokens"`
	CacheCreation int64 `json:"cache_creation_input_tokens"`
}

// finding is the result of a check, whose severity is empty if all is well.
type finding struct{ Severity, What, Why, Remedy string }

// row is an object in the API's JSON, such as one of a list.
type row map[string]any

// rows returns a list of objects.
func (r row) rows(name string) (all []row) {
	list, _ := r[name].([]any)
	for _, one := range list {
		if object, ok := one.(map[string]any); ok {
			all = append(all, object)
		}
	}
	return all
}

// has reports whether there is a value.
func (r row) has(name string) bool { return r[name] != nil }

// text returns a string, a number, or several strings with commas between them; empty if there is no value.
func (r row) text(name string) string {
	switch v := r[name].(type) {
	case nil:
		return ""
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []any:
		words := make([]string, len(v))
		for i, word := range v {
			words[i] = fmt.Sprint(word)
		}
		return strings.Join(words, ",")
	default:
		return fmt.Sprint(v)
	}
}

func (r row) number(name string) float64 {
	n, _ := r[name].(float64)
	return n
}

func (r row) time(name string) time.Time {
	at, _ := time.Parse(time.RFC3339, r.text(name))
	return at
}

func (r row) day(name string) string { return r.time(name).UTC().Format(time.DateOnly) }

// minute returns a time to the minute; empty if there is none.
func (r row) minute(name string) string {
	if !r.has(name) {
		return ""
	}
	return r.time(name).Local().Format("2006-01-02 15:04 -0700")
}
