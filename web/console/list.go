package console

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/internal/legible"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/web/internal/view"
)

// row is a task in the list, formatted.
type row struct {
	ID, Title, Source, Actor string
	State, Ending            string
	Repo                     string
	Created                  time.Time
	Age, Took, Cost          string
	Note                     string // why it waits, or how it ended
	Label                    string // the state in words
	Stopping                 bool   // it was cancelled and has not ended yet
	Asking                   bool   // it waits for an answer

	ByActor, ByRepo string // URLs of the list filtered by these
}

func newRow(v view.Task, now time.Time) row {
	r := row{
		ID: v.Task.ID, Title: legible.Text(v.Title), Source: v.Task.Source, Actor: askedBy(v.Status), State: v.State, Repo: v.Task.Repo,
		Created: v.Created, Age: legible.Age(now.Sub(v.Created)), Note: legible.Text(cmp.Or(v.Why, v.Sentence)),
		Label: v.Headline(now).State, Stopping: v.Stopping(), Asking: len(v.Questions) > 0,
	}
	if r.Asking {
		r.Label, r.Note = "Needs you", legible.Text(v.Questions[0].Text)
	}
	switch {
	case v.Ending != nil:
		r.Ending = string(v.Ending.Kind)
		r.Cost = view.USD(v.Ending.CostUSD())
		if d := v.Ended.Sub(v.Started); !v.Started.IsZero() && d >= time.Second {
			r.Took = legible.Age(d)
		}
	case v.State == "running" && !v.Started.IsZero():
		r.Took = legible.Age(now.Sub(v.Started))
	case v.State == "waiting" && v.At.After(now):
		r.Note = strings.TrimSpace(r.Note + " Not before " + v.At.UTC().Format("15:04 UTC") + ".")
	}
	return r
}

// StateClass returns the CSS class of the task's state: its ending, its state, "asking" or "stopping".
func (r row) StateClass() string {
	switch {
	case r.Stopping:
		return "stopping"
	case r.Asking:
		return "asking"
	}
	return cmp.Or(r.Ending, r.State)
}

// choice is a link that changes the query of a page.
type choice struct {
	Label, URL string
	Here       bool // it is the current one
}

// listView is the page of tasks.
type listView struct {
	Rows          []row
	Filter        tasks.Filter
	States        []choice
	Endings       []tasks.EndingKind
	Sources       []string // suggestions for the filters, from the tasks on the page
	People, Repos []string

	Filtered          bool   // by more than the state
	Newest            string // the URL of the first page; empty on it
	Older, SearchedTo string // the URL of the next page; and, if the search stopped early, the time that it reached
	Fleet             fleetView
}

// Details reports whether a filter of the folded part of the form is set.
func (v listView) Details() bool {
	f := v.Filter
	return f.Source+f.Repo+f.Person+f.Channel+string(f.Ending) != ""
}

func (c *Console) listPage(w http.ResponseWriter, r *http.Request) error {
	l, filter, err := c.view.List(r.Context(), r.URL.Query())
	if err != nil {
		return err
	}
	fleet, err := c.view.Snapshot(r.Context())
	if err != nil {
		return err
	}
	return c.out.LivePage(w, r, "list", newListView(l, filter, fleet, c.view.Now()))
}

func newListView(l view.Listing, f tasks.Filter, fleet view.Snapshot, now time.Time) listView {
	v := listView{Filter: f, Endings: tasks.EndingKinds(), Fleet: newFleetView(fleet, now)}
	for _, state := range append([]string{""}, view.Strings(view.States)...) {
		v.States = append(v.States, choice{cmp.Or(state, "all"), listURL(f, func(f *tasks.Filter) {
			f.State = state
			if state != "ended" {
				f.Ending = "" // only ended tasks have one
			}
		}), state == f.State})
	}
	for _, t := range l.Tasks {
		r := newRow(t, now)
		r.ByRepo = listURL(f, func(f *tasks.Filter) { f.Repo = r.Repo })
		r.ByActor = listURL(f, func(f *tasks.Filter) { f.Person = cmp.Or(t.Person, r.Source+"/"+t.Task.Actor) })
		v.Rows = append(v.Rows, r)
		v.Sources, v.People, v.Repos = append(v.Sources, r.Source), append(v.People, r.Actor), append(v.Repos, r.Repo)
	}
	v.Sources, v.People, v.Repos = distinct(v.Sources), distinct(v.People), distinct(v.Repos)
	v.Filtered = f.Text != "" || v.Details()
	if f.Before != "" {
		v.Newest = listURL(f)
	}
	if l.Next != "" {
		older := view.FilterValues(f)
		older.Set("before", l.Next)
		v.Older = "/?" + older.Encode()
		if len(l.Tasks) < f.Limit {
			v.SearchedTo = view.Time(tasks.Born(l.Next))
		}
	}
	return v
}

// listURL returns the first page of the list with a changed filter.
func listURL(f tasks.Filter, change ...func(*tasks.Filter)) string {
	for _, apply := range change {
		apply(&f)
	}
	to := url.URL{Path: "/", RawQuery: view.FilterValues(f).Encode()}
	return to.String()
}

// distinct sorts values, and drops empty ones and duplicates.
func distinct(values []string) []string {
	slices.Sort(values)
	return slices.DeleteFunc(slices.Compact(values), func(v string) bool { return v == "" })
}
