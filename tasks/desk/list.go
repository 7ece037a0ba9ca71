package desk

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/scope"
	"github.com/errand-fleet/errand/tasks/people"
)

// How many tasks one listing examines, give or take a few hundred: with filters on the record's fields, and with
// filters on the whole task. More would take too long; the caller continues with Listing.Next.
const (
	lookQuickly = 5000
	lookClosely = 1000
)

// defaultLimit is how many tasks a page has at most if its filter does not say.
const defaultLimit = 50

// Filter selects tasks. The zero value selects the newest ones.
type Filter struct {
	State  string // waiting, running, absorbed, ended; empty: any
	Limit  int    // 0: defaultLimit
	Before string // an ID: only older tasks, for the next page

	Source, Repo string
	Person       string           // their name in People or their account in any source; "slack/U1" is that source only
	linked       string           // their account on the forge
	Channel      string           // its name in any source, or with a source like Person
	Ending       tasks.EndingKind // how it ended
	Text         string           // part of the prompt or the ID; case does not matter
	Class        string           // the class of its queue
	Pool         string           // the name of its pool, also of the default one
	Days         int              // asked for today, in UTC, or on the so many days up to it; 0: at any time
}

// Listing is a page of tasks, newest first.
type Listing struct {
	Tasks []tasks.Status
	// Next is Before for the next page; empty if none exists. If the page has fewer tasks than the limit, Next is
	// where the listing stopped examining tasks.
	Next string
}

// List returns the newest tasks that match a filter.
func (d *Desk) List(ctx context.Context, f Filter) (Listing, error) {
	if user, ok := strings.CutPrefix(f.Person, people.SlackSource+"/"); ok {
		var err error
		if f.linked, _, err = d.policy.Linked(ctx, d.store, user); err != nil {
			return Listing{}, fmt.Errorf("list tasks: %w", err)
		}
	}
	page, err := d.store.List(ctx, f.query(d.policy.People, d.policy.People.Visible(ctx)))
	if err != nil {
		return Listing{}, fmt.Errorf("list tasks: %w", err)
	}
	list, err := d.statuses(ctx, page.Records)
	if err != nil {
		return Listing{}, fmt.Errorf("list tasks: %w", err)
	}
	return Listing{Tasks: list, Next: page.Next}, nil
}

// Find returns the ID of the only task that a part of its ID or the beginning of its short form fits, of those that the
// visitor may see. It returns a whole ID as it is, also of no task.
func (d *Desk) Find(ctx context.Context, part string) (id string, err error) {
	if tasks.ValidID(part) {
		return part, nil
	}
	if len(part) < display.MinTaskID {
		return "", &tasks.InputError{
			Sentence: fmt.Sprintf("Write at least %d characters of the task's ID.", display.MinTaskID),
		}
	}
	q := store.ListQuery{Limit: 2, ID: func(id string) bool {
		return display.IsTaskID(id, part) || strings.Contains(id, strings.ToLower(part))
	}}
	if sees := d.policy.People.Visible(ctx); sees != nil {
		q.Head = func(r store.Record) bool { return sees(r.Scopes) }
	}
	page, err := d.store.List(ctx, q)
	if err != nil {
		return "", fmt.Errorf("find task: %w", err)
	}
	switch found := page.Records; len(found) {
	case 0:
		return "", tasks.ErrNotFound
	case 1:
		return found[0].ID, nil
	default:
		return "", &tasks.InputError{Sentence: fmt.Sprintf("%q is a part of several IDs, such as %s and %s. "+
			"Write more of it.", part, found[0].ID, found[1].ID)}
	}
}

// statuses returns the status of each record, with its open questions.
func (d *Desk) statuses(ctx context.Context, records []store.Record) ([]tasks.Status, error) {
	list := make([]tasks.Status, 0, len(records))
	for _, rec := range records {
		list = append(list, d.status(rec))
	}
	if err := d.askOpen(ctx, records, list); err != nil {
		return nil, err
	}
	if err := d.notePlaces(ctx, records, list); err != nil {
		return nil, err
	}
	d.noteUnable(ctx, list)
	return list, nil
}

// query converts the filter for the store.
func (f Filter) query(known people.People, sees func(scopes []string) bool) store.ListQuery {
	q := store.ListQuery{
		State: store.State(f.State), Limit: cmp.Or(f.Limit, defaultLimit), Before: f.Before, Look: lookQuickly,
	}
	if f.Days > 0 {
		q.Since = time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 1-f.Days)
	}
	if f.Source+f.Repo+f.Person+f.Channel+f.Class+f.Pool != "" || sees != nil {
		persons := known.Filter(f.Person)
		if f.linked != "" {
			persons = append(persons, known.Filter(people.ForgeSource+"/"+f.linked)...)
		}
		q.Head = func(r store.Record) bool {
			return (f.Source == "" || f.Source == tasks.SourceOf(r.ID)) && (f.Class == "" || f.Class == r.Class) &&
				(f.Pool == "" || f.Pool == tasks.PoolName(r.Pool)) &&
				scope.Within(r.Scopes, f.Repo, persons, f.Channel) && (sees == nil || sees(r.Scopes))
		}
	}
	if f.Text != "" || f.Ending != "" {
		q.Match, q.Look = f.match, lookClosely
	}
	if f.Ending != "" && q.State == "" {
		q.State = store.Ended
	}
	return q
}

// match matches the prompt and the ending.
func (f Filter) match(r store.Record) bool {
	var ending tasks.Ending
	if f.Ending != "" && (json.Unmarshal(r.Ending, &ending) != nil || ending.Kind != f.Ending) {
		return false
	}
	var t struct{ Prompt string }
	return f.Text == "" || display.IsTaskID(r.ID, f.Text) ||
		json.Unmarshal(r.Task, &t) == nil && strings.Contains(strings.ToLower(t.Prompt), strings.ToLower(f.Text))
}
