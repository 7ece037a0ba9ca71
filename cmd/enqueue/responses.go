package main

import (
	"cmp"
	"encoding/json"
	"regexp"
	"strings"
	"time"
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

// name returns the name of the person who asked for the task.
func (t task) name() string { return cmp.Or(t.Person, t.Task.Name, t.Task.Actor) }

// repositories returns the task's repositories, the main one first.
func (t task) repositories() []string {
	if t.Task.Repo == "" {
		return nil
	}
	return append([]string{t.Task.Repo}, t.Task.Also...)
}

// said returns what the agent said, complete and incomplete.
func (t task) said() string {
	r := t.Ending.Result
	if t.Ending.Kind == "answered" {
		r.Partial = ""
	}
	return strings.TrimSpace(strings.TrimSpace(r.Text) + "\n\n" + strings.TrimSpace(r.Partial))
}

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

// idForm is the form of a task's ID.
var idForm = regexp.MustCompile(`^[0-9]{16}-[a-z]+-[a-z0-9.-]+$`)

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

// taken returns the tokens that went to the model.
func (u usage) taken() int64 { return u.Input + u.CacheRead + u.CacheCreation }

// finding is the result of a check, whose severity is empty if all is well.
type finding struct{ Severity, What, Why, Remedy string }

// costs is the response of GET /api/costs.
type costs struct {
	By      []string
	Rows    []costRow
	More    int // rows that are left out
	Total   costSum
	LeftOut *costSum `json:"left_out"`
}

type costSum struct {
	USD   float64 `json:"cost_usd"`
	Max   float64 `json:"max_usd"`
	Runs  int64
	Usage usage
}

type costRow struct {
	costSum
	Day, Person, Channel, Repository, Model, Credential, Size string
	Other                                                     bool // of which only the day is known
}

// name returns the row's value of a column.
func (r costRow) name(by string) string {
	return map[string]string{
		"day": r.Day, "person": r.Person, "channel": r.Channel, "repository": r.Repository, "model": r.Model,
		"credential": r.Credential, "size": r.Size,
	}[by]
}

// environment is an environment that a worker keeps.
type environment struct {
	ID, Repo, Host, Worker, From string
	Made, Used                   time.Time
	Seconds                      float64 `json:"set_up_seconds"`
	Bytes                        int64
	Rebuild                      *struct{ At time.Time } // from when it is not used any more
}

func (e environment) took() time.Duration { return time.Duration(e.Seconds * float64(time.Second)) }

// token is an API token.
type token struct {
	Name, Role, By   string
	Repositories     []string
	Created, Expires time.Time
}
