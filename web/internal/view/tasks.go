// Package view holds what the console and the API show alike: tasks, the fleet and its health, and costs.
//
// It reads from the desk and the store and writes no HTTP. A Reader may be used from any number of goroutines.
package view

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/web/internal/respond"
)

// Reader reads tasks, fleet and costs, and acts on tasks for a visitor.
type Reader struct {
	Desk    *desk.Desk
	Store   *store.Store
	Inbound []Inbound                         // sources whose events the health reports on
	Notices []store.Finding                   // about the configuration of this process
	Config  *config.Shown                     // of this process; nil: it is not shown
	Reviews map[string]tasks.Reviewer         // by source
	Explain func(error) (what, remedy string) // why Redis cannot be used
	Now     func() time.Time
	Log     *slog.Logger
}

// Task is a task as the console and the API show it.
type Task struct {
	tasks.Status
	Title    string `json:"title"`              // the beginning of its prompt
	Sentence string `json:"sentence,omitempty"` // how it ended, if the answer does not say it

	Footer string   `json:"footer,omitempty"` // its run in a line: duration, turns, cost, model
	Notes  []string `json:"notes,omitempty"`  // the published work, a line for each repository
	Review string   `json:"review,omitempty"` // the result of a review, as Markdown; empty in lists

	Reviewed *tasks.ReviewResult `json:"-"` // the same with its pull request; nil: the task is no review with findings
}

// Whole returns the view of one task, with the text of a review.
func (v *Reader) Whole(ctx context.Context, s tasks.Status) (Task, error) {
	t := v.NewTask(s)
	if t.Reviewed == nil {
		return t, nil
	}
	result, err := v.Reviews[s.Task.Source].Result(ctx, s.Task, *s.Ending)
	if err != nil {
		return t, fmt.Errorf("read the review of %s: %w", s.Task.ID, err)
	}
	t.Reviewed, t.Review = result, result.Text
	return t, nil
}

// NewTask returns the view of a task. It has no origin, which belongs to the source and may hold secrets.
func (v *Reader) NewTask(s tasks.Status) Task {
	t := Task{Status: s, Title: s.Task.Title()}
	t.Task.Origin = nil
	if s.Ending == nil {
		return t
	}
	t.Sentence, t.Footer, t.Notes = s.Ending.Sentence(), s.Ending.Footer(), s.Ending.Notes()
	if source := v.Reviews[s.Task.Source]; source != nil {
		t.Reviewed = source.Reported(s.Task, *s.Ending)
	}
	return t
}

// Listing is a page of tasks, newest first.
type Listing struct {
	Tasks []Task `json:"tasks"`
	Next  string `json:"next,omitempty"` // the before parameter of the next page; empty on the last
}

// List lists the tasks that a query asks for.
func (v *Reader) List(ctx context.Context, query url.Values) (Listing, desk.Filter, error) {
	filter, err := ParseFilter(query)
	if err != nil {
		return Listing{}, filter, err
	}
	if filter.Before != "" {
		filter.Before, err = v.Desk.Find(ctx, filter.Before)
		if _, input := errors.AsType[*tasks.InputError](err); input || errors.Is(err, tasks.ErrNotFound) {
			err = respond.BadQuery("before must be the ID of a task, such as next of the previous page.")
		}
		if err != nil {
			return Listing{}, filter, err
		}
	}
	found, err := v.Desk.List(ctx, filter)
	if err != nil {
		return Listing{}, filter, err
	}
	return Listing{Tasks: v.NewTasks(found.Tasks), Next: found.Next}, filter, nil
}

// NewTasks returns the views of tasks.
func (v *Reader) NewTasks(list []tasks.Status) []Task {
	views := make([]Task, 0, len(list))
	for _, s := range list {
		views = append(views, v.NewTask(s))
	}
	return views
}

// Bounds of a query.
const (
	DefaultList = 50
	maxList     = 200
	maxDays     = 366
	MaxFilter   = 200 // bytes of a value to filter by; no value that it is compared with is longer
)

// States are the states to filter tasks by, in the order of the console.
var States = []store.State{store.Waiting, store.Running, store.Absorbed, store.Ended}

// ParseFilter reads a filter from a query.
func ParseFilter(q url.Values) (desk.Filter, error) {
	f := desk.Filter{Limit: DefaultList, Before: q.Get("before")}
	if err := readFilters(q, filters(&f)); err != nil {
		return f, err
	}
	if err := respond.Number(q, "limit", maxList, &f.Limit); err != nil {
		return f, err
	}
	if err := respond.Number(q, "days", maxDays, &f.Days); err != nil {
		return f, err
	}
	switch {
	case f.Repo != "" && strings.Count(f.Repo, "/") != 1:
		return f, respond.BadQuery("repository must be owner/name.")
	case f.Class != "" && !slices.Contains(tasks.Classes, f.Class):
		return f, respond.BadQuery("class must be one of %s.", OneOf(tasks.Classes))
	case f.State != "" && !slices.Contains(States, store.State(f.State)):
		return f, respond.BadQuery("state must be one of %s. The filter ending says how tasks ended.", OneOf(States))
	case f.Ending != "" && !slices.Contains(tasks.EndingKinds(), f.Ending):
		return f, respond.BadQuery("ending must be one of %s.", OneOf(tasks.EndingKinds()))
	}
	return f, nil
}

// FilterValues returns a filter as a query, without the page: the inverse of ParseFilter.
func FilterValues(f desk.Filter) url.Values {
	q := filterValues(filters(&f))
	if f.Limit != DefaultList {
		q.Set("limit", strconv.Itoa(f.Limit))
	}
	if f.Days > 0 {
		q.Set("days", strconv.Itoa(f.Days))
	}
	return q
}

// filters returns the fields of a filter by parameter.
func filters(f *desk.Filter) map[string]*string {
	return map[string]*string{
		"state": &f.State, "source": &f.Source, "repository": &f.Repo, "person": &f.Person, "channel": &f.Channel,
		"ending": (*string)(&f.Ending), "text": &f.Text, "class": &f.Class, "pool": &f.Pool,
	}
}

// readFilters reads the values to filter by from a query.
func readFilters(q url.Values, fields map[string]*string) error {
	for name, field := range fields {
		if *field = q.Get(name); len(*field) > MaxFilter {
			return respond.BadQuery("A filter has at most %d bytes.", MaxFilter)
		}
	}
	return nil
}

// filterValues returns the values to filter by as a query.
func filterValues(fields map[string]*string) url.Values {
	q := url.Values{}
	for name, field := range fields {
		if *field != "" {
			q.Set(name, *field)
		}
	}
	return q
}

// OneOf lists values in a sentence: "a, b and c".
func OneOf[T ~string](values []T) string {
	words := Strings(values)
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// Strings converts values to strings.
func Strings[T ~string](values []T) []string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = string(v)
	}
	return list
}

// ID returns the ID of the task in the path of a request, which may be a part of it.
func (v *Reader) ID(r *http.Request) (string, error) {
	id, err := v.Desk.Find(r.Context(), r.PathValue("id"))
	if input, ok := errors.AsType[*tasks.InputError](err); ok {
		err = respond.Error(http.StatusBadRequest, "Invalid ID", input.Sentence)
	}
	return id, err
}

// onTask calls do with the ID in the path of a request.
func (v *Reader) onTask(
	r *http.Request, do func(ctx context.Context, id string) (tasks.Status, error),
) (tasks.Status, error) {
	id, err := v.ID(r)
	if err != nil {
		return tasks.Status{}, err
	}
	return do(r.Context(), id)
}

// Task reads the task in the path of a request.
func (v *Reader) Task(r *http.Request) (tasks.Status, error) { return v.onTask(r, v.Desk.Status) }

// Cancel cancels the task in the path, in the visitor's name.
func (v *Reader) Cancel(r *http.Request) (tasks.Status, error) {
	return v.onTask(r, func(ctx context.Context, id string) (tasks.Status, error) {
		return v.Desk.Cancel(ctx, id, people.PublicName(ctx))
	})
}

// Retry lets the task in the path run again. The store records who cancels and answers, but not who retries, so the log
// does.
func (v *Reader) Retry(r *http.Request) (tasks.Status, error) {
	s, err := v.onTask(r, v.Desk.Retry)
	if input, ok := errors.AsType[*tasks.InputError](err); ok {
		err = respond.Error(http.StatusConflict, "Not retried", input.Sentence)
	}
	if err == nil {
		v.Log.Info("retry task", "run", s.Task.ID, "by", people.Actor(r.Context()))
	}
	return s, err
}

// Take takes the task in the path over, in the visitor's name.
func (v *Reader) Take(r *http.Request) (t desk.Taken, err error) {
	id, err := v.ID(r)
	if err != nil {
		return t, err
	}
	t, err = v.Desk.Take(r.Context(), id, people.PublicName(r.Context()))
	if input, ok := errors.AsType[*tasks.InputError](err); ok {
		err = respond.Error(http.StatusConflict, "Not taken over", input.Sentence)
	}
	return t, err
}

// MaxAnswer bounds the body of a request with an answer, in bytes.
const MaxAnswer = 64 << 10

// Answer gives the visitor's answer to a question of the task in the path. The result is the answer that counts: the
// first one.
func (v *Reader) Answer(r *http.Request, question, text string) (id string, a tasks.Answer, err error) {
	if id, err = v.ID(r); err != nil {
		return id, a, err
	}
	a, err = v.Desk.Answer(r.Context(), id, question, people.PublicName(r.Context()), text)
	if mistake, ok := errors.AsType[*tasks.InputError](err); ok {
		err = respond.Error(http.StatusUnprocessableEntity, "Invalid answer", mistake.Sentence)
	}
	if errors.Is(err, tasks.ErrNotFound) {
		err = respond.Error(http.StatusNotFound, "No such question",
			"The task is not waiting for this answer: it never asked, continued without it, or has ended.")
	}
	return id, a, err
}

// Time formats a time in a sentence that programs get as well; it returns "" for the zero time.
func Time(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

// USD formats an amount in a sentence; it returns "" for none.
func USD(amount float64) string {
	if amount <= 0 {
		return ""
	}
	return display.Dollars(amount)
}
