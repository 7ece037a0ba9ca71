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

// How many tasks one listing looks at, at most, give or take a few hundred: by what is quickly read of each, and by the whole of each. More
// would keep the reader waiting; he goes on from where it stopped.
const (
	lookQuickly = 5000
	lookClosely = 1000
)

// Filter says which tasks to list. The zero value is the newest ones.
type Filter struct {
	State  string // waiting, running, absorbed, ended; empty: any
	Limit  int    // 0: 50
	Before string // an ID: only older ones, for the next page

	Source, Repo string
	Person       string     // by their name in People, or as a source calls them; "slack/U1" is the one of that source alone
	Channel      string     // likewise
	Ending       EndingKind // how it ended
	Text         string     // in the request or in the ID; case does not matter
}

// Listing is a page of tasks, newest first.
type Listing struct {
	Tasks []Status
	// Next is Before of the page that follows; empty: there is none. With fewer tasks than the limit, it is where the listing stopped looking
	// for more.
	Next string
}

// List reads the newest tasks that pass a filter.
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

// query is the filter as the store takes it.
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

// head decides by what a task counts in, and by its ID.
func (f Filter) head(r store.Record, persons []string) bool {
	return (f.Source == "" || f.Source == sourceOf(r.ID)) && within(r.Scopes, f.Repo, persons, f.Channel)
}

// within reports whether scopes are of that repository, of one of these persons and of that channel; empty: of any.
func within(scopes []string, repo string, persons []string, channel string) bool {
	asked := func(person string) bool { return inScope(scopes, userScope, format.OneWord(person)) }
	return (repo == "" || inScope(scopes, repoScope, repo)) &&
		(len(persons) == 0 || slices.ContainsFunc(persons, asked)) &&
		(channel == "" || inScope(scopes, channelScope, format.OneWord(channel)))
}

// sourceOf is the source that an ID names.
func sourceOf(id string) string {
	_, rest, _ := strings.Cut(id, "-")
	source, _, _ := strings.Cut(rest, "-")
	return source
}

// inScope reports whether one of the scopes is that name, or ends in it after a source.
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

// match decides by what was asked and how it ended.
func (f Filter) match(r store.Record) bool {
	var ending Ending
	if f.Ending != "" && (json.Unmarshal(r.Ending, &ending) != nil || ending.Kind != f.Ending) {
		return false
	}
	var t struct{ Prompt string }
	return f.Text == "" || strings.Contains(r.ID, f.Text) ||
		json.Unmarshal(r.Task, &t) == nil && strings.Contains(strings.ToLower(t.Prompt), strings.ToLower(f.Text))
}
