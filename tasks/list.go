package tasks

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/internal/format"
)

// How many tasks one listing examines, give or take a few hundred: with filters on the record's fields, and with
// filters on the whole task. More would take too long; the caller continues with Listing.Next.
const (
	lookQuickly = 5000
	lookClosely = 1000
)

// Filter selects tasks. The zero value selects the newest ones.
type Filter struct {
	State  string // waiting, running, absorbed, ended; empty: any
	Limit  int    // 0: 50
	Before string // an ID: only older tasks, for the next page

	Source, Repo string
	Person       string     // their name in People or their account in any source; "slack/U1" is that source only
	Channel      string     // its name in any source, or with a source like Person
	Ending       EndingKind // how it ended
	Text         string     // part of the prompt or the ID; case does not matter
}

// Listing is a page of tasks, newest first.
type Listing struct {
	Tasks []Status
	// Next is Before for the next page; empty if there is none. If the page has fewer tasks than the limit, Next is
	// where the listing stopped examining tasks.
	Next string
}

// List returns the newest tasks that match a filter.
func (d *Desk) List(ctx context.Context, f Filter) (Listing, error) {
	page, err := d.store.List(ctx, f.query(d.policy.People))
	if err != nil {
		return Listing{}, fmt.Errorf("list tasks: %w", err)
	}
	l := Listing{Tasks: make([]Status, 0, len(page.Records)), Next: page.Next}
	for _, rec := range page.Records {
		l.Tasks = append(l.Tasks, d.status(rec))
	}
	d.noteUnreadable(ctx, l.Tasks)
	d.noteUnable(ctx, l.Tasks)
	return l, nil
}

// query converts the filter for the store.
func (f Filter) query(people People) store.ListQuery {
	q := store.ListQuery{State: store.State(f.State), Limit: f.Limit, Before: f.Before, Look: lookQuickly}
	if f.Source != "" || f.Repo != "" || f.Person != "" || f.Channel != "" {
		persons := people.filter(f.Person)
		q.Head = func(r store.Record) bool { return f.head(r, persons) }
	}
	if f.Text != "" || f.Ending != "" {
		q.Match, q.Look = f.match, lookClosely
	}
	if f.Ending != "" && q.State == "" {
		q.State = store.Ended
	}
	return q
}

// head matches the record's scopes and ID.
func (f Filter) head(r store.Record, persons []string) bool {
	return (f.Source == "" || f.Source == sourceOf(r.ID)) && within(r.Scopes, f.Repo, persons, f.Channel)
}

// within reports whether scopes contain the repository, one of the persons and the channel. An empty argument matches
// anything.
func within(scopes []string, repo string, persons []string, channel string) bool {
	asked := func(person string) bool { return inScope(scopes, userScope, format.OneWord(person)) }
	return (repo == "" || inScope(scopes, repoScope, repo)) &&
		(len(persons) == 0 || slices.ContainsFunc(persons, asked)) &&
		(channel == "" || inScope(scopes, channelScope, format.OneWord(channel)))
}

// sourceOf returns the source in a task's ID.
func sourceOf(id string) string {
	_, rest, _ := strings.Cut(id, "-")
	source, _, _ := strings.Cut(rest, "-")
	return source
}

// inScope reports whether one of the scopes has that kind and name, with or without its source.
func inScope(scopes []string, kind, name string) bool {
	for _, s := range scopes {
		of, ok := strings.CutPrefix(s, kind)
		_, bare, _ := strings.Cut(of, "/")
		if ok && (strings.EqualFold(of, name) || kind != repoScope && strings.EqualFold(bare, name)) {
			return true
		}
	}
	return false
}

// match matches the prompt and the ending.
func (f Filter) match(r store.Record) bool {
	var ending Ending
	if f.Ending != "" && (json.Unmarshal(r.Ending, &ending) != nil || ending.Kind != f.Ending) {
		return false
	}
	var t struct{ Prompt string }
	return f.Text == "" || strings.Contains(r.ID, f.Text) ||
		json.Unmarshal(r.Task, &t) == nil && strings.Contains(strings.ToLower(t.Prompt), strings.ToLower(f.Text))
}
