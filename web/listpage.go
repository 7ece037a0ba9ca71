package web

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/internal/legible"
	"github.com/errand-fleet/errand/tasks"
)

// row is a task in the list, in words.
type row struct {
	ID, Title, Source, Actor string
	State, Ending            string
	Repo                     string
	Created                  time.Time
	Age, Took, Cost          string
	Note                     string // what it waits for, or how it ended
	Stopping                 bool   // somebody has asked for its end

	ByActor, ByRepo string // the list filtered by these
}

func (h *Handler) row(v view) row {
	r := row{
		ID: v.Task.ID, Title: legible.Text(v.Title), Source: v.Task.Source, Actor: legible.Text(cmp.Or(v.Person, v.Task.Actor)), State: v.State, Repo: v.Task.Repo,
		Created: v.Created, Age: legible.Age(h.now().Sub(v.Created)), Note: legible.Text(cmp.Or(v.Why, v.Sentence)),
		Stopping: v.Stopping(),
	}
	switch {
	case v.Ending != nil:
		r.Ending = string(v.Ending.Kind)
		r.Cost = cost(v.Ending.CostUSD())
		if d := v.Ended.Sub(v.Started); !v.Started.IsZero() && d >= time.Second {
			r.Took = legible.Age(d)
		}
	case v.State == "running" && !v.Started.IsZero():
		r.Took = legible.Age(h.now().Sub(v.Started))
	case v.State == "waiting" && v.At.After(h.now()):
		r.Note = strings.TrimSpace(r.Note + " Not before " + v.At.UTC().Format("15:04 UTC") + ".")
	}
	return r
}

// Sign is the word for how the task is: its ending, its state, or that it is stopping.
func (r row) Sign() string {
	if r.Stopping {
		return "stopping"
	}
	return cmp.Or(r.Ending, r.State)
}

// Label is that word as people read it.
func (r row) Label() string {
	if r.Stopping {
		return "stopping…"
	}
	return strings.ReplaceAll(r.Sign(), "_", " ")
}

func cost(usd float64) string {
	if usd <= 0 {
		return ""
	}
	return fmt.Sprintf("$%.2f", usd)
}

// choice is a link that changes the filter.
type choice struct {
	Label, URL string
	Here       bool
}

// listView is the page of tasks.
type listView struct {
	Rows          []row
	Filter        tasks.Filter
	States        []choice
	Endings       []tasks.EndingKind
	Sources       []string // to choose from, and likewise below: of the tasks that are shown
	People, Repos []string

	Filtered    bool   // by more than the state
	Newest      string // the URL of the first page; empty on it
	Older, Back string // the URL of the next page, and, where the list stopped looking for more, the time it has come to
	Fleet       fleetView
}

// Details reports whether a filter is set that is folded away.
func (v listView) Details() bool {
	f := v.Filter
	return f.Source+f.Repo+f.Person+f.Channel+string(f.Ending) != ""
}

func (h *Handler) listPage(w http.ResponseWriter, r *http.Request) {
	l, filter, ok := h.tasks(w, r)
	if !ok {
		return
	}
	seen, err := h.glance(r.Context())
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	h.livePage(w, r, "list", h.listView(l, filter, seen))
}

// glance sees the fleet, or gives up while whoever asks is still there.
func (h *Handler) glance(ctx context.Context) (sight, error) {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	var seen sight
	if err := soon(ctx, func(ctx context.Context) error { return seen.glance(ctx, h.cfg) }); err != nil {
		return sight{}, err // without what was seen: that may still be written to
	}
	return seen, nil
}

func (h *Handler) listView(l listing, f tasks.Filter, seen sight) listView {
	v := listView{Filter: f, Endings: endings, Fleet: newFleetView(seen, h.now())}
	for _, state := range append([]string{""}, words(states)...) {
		v.States = append(v.States, choice{cmp.Or(state, "all"), listURL(f, func(f *tasks.Filter) {
			f.State = state
			if state != "ended" {
				f.Ending = "" // nothing else has one
			}
		}), state == f.State})
	}
	for _, t := range l.Tasks {
		r := h.row(t)
		r.ByRepo = listURL(f, func(f *tasks.Filter) { f.Repo = r.Repo })
		r.ByActor = listURL(f, func(f *tasks.Filter) { f.Person = cmp.Or(t.Person, r.Source+"/"+r.Actor) })
		v.Rows = append(v.Rows, r)
		v.Sources, v.People, v.Repos = append(v.Sources, r.Source), append(v.People, r.Actor), append(v.Repos, r.Repo)
	}
	v.Sources, v.People, v.Repos = distinct(v.Sources), distinct(v.People), distinct(v.Repos)
	v.Filtered = f.Text != "" || v.Details()
	if f.Before != "" {
		v.Newest = listURL(f)
	}
	if l.Next != "" {
		older := values(f)
		older.Set("before", l.Next)
		v.Older = "/?" + older.Encode()
		if len(l.Tasks) < f.Limit {
			v.Back = at(tasks.Born(l.Next))
		}
	}
	return v
}

// listURL is the first page of the list, with a filter that is changed a little.
func listURL(f tasks.Filter, change ...func(*tasks.Filter)) string {
	for _, c := range change {
		c(&f)
	}
	to := url.URL{Path: "/", RawQuery: values(f).Encode()}
	return to.String()
}

// words are values as text.
func words[T ~string](values []T) []string {
	var list []string
	for _, v := range values {
		list = append(list, string(v))
	}
	return list
}

// distinct sorts words and drops what is empty or there twice.
func distinct(words []string) []string {
	slices.Sort(words)
	words = slices.Compact(words)
	if len(words) > 0 && words[0] == "" {
		words = words[1:]
	}
	return words
}

// cancelForm is what the Stop button of a task does.
func (h *Handler) cancelForm(w http.ResponseWriter, r *http.Request) {
	if s, ok := h.ask(w, r, h.stopTask); ok {
		back(w, r, s.Task.ID)
	}
}

// retryForm is what the Retry button does.
func (h *Handler) retryForm(w http.ResponseWriter, r *http.Request) {
	if s, ok := h.ask(w, r, h.retryTask); ok {
		back(w, r, s.Task.ID)
	}
}

// back leads to the page of a task on which a button was pressed: its own, or that of a conversation, which the form then names.
func back(w http.ResponseWriter, r *http.Request, id string) {
	to := "/tasks/" + id
	if thread := r.PostFormValue("thread"); threadForm.MatchString(thread) {
		to = "/chat/" + thread + "#latest"
	}
	http.Redirect(w, r, to, http.StatusSeeOther) //nolint:gosec // both have a form that leads to our own pages
}
