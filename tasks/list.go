package tasks

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
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

// UnreadableError means that a task's record cannot be decoded, because another version or a mistake wrote it. It
// does not affect other tasks, so a list shows such a record and continues.
type UnreadableError struct {
	ID, Why string
}

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("unreadable record %s: %s; remove it with redis-cli DEL errand:task:%s", e.ID, e.Why, e.ID)
}

// ReadTask decodes a stored task. The error is an UnreadableError. The task's Thread is the record's, because a task
// may have been submitted under an alias of its thread.
func ReadTask(rec store.Record) (t Task, _ error) {
	why := rec.Unreadable
	if why == "" {
		if err := json.Unmarshal(rec.Task, &t); err != nil {
			why = "its task cannot be decoded: " + err.Error()
		} else if t.ID != rec.ID || t.Source == "" {
			why = "its task has no source or another ID"
		}
	}
	if why != "" {
		return Task{}, &UnreadableError{rec.ID, why}
	}
	t.Thread = rec.Thread
	return t, nil
}

// ReadEnding decodes a task's ending; it returns nil if the task has none. The error is an UnreadableError.
func ReadEnding(rec store.Record) (e *Ending, _ error) {
	if len(rec.Ending) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(rec.Ending, &e); err != nil {
		return nil, &UnreadableError{rec.ID, "its ending cannot be decoded: " + err.Error()}
	}
	return e, nil
}

// ReadMemo decodes the value that a source stores under a name. If the value cannot be decoded, because another
// version wrote it, ReadMemo logs that and leaves v unchanged.
func ReadMemo[T any](log *slog.Logger, name string, body json.RawMessage, v *T) {
	if body == nil {
		return
	}
	var read T
	if err := json.Unmarshal(body, &read); err != nil {
		log.Warn("unreadable memo", "memo", name, "err", err)
		return
	}
	*v = read
}

// standIn returns a task to show in place of one that cannot be decoded.
func standIn(rec store.Record, why error) Task {
	return Task{ID: rec.ID, Source: sourceOf(rec.ID), Kind: "unreadable", Thread: rec.Thread, Class: rec.Class, Prompt: why.Error()}
}

// noteUnreadable records the tasks that cannot be decoded for `enqueue doctor`.
func (d *Desk) noteUnreadable(ctx context.Context, list []Status) {
	why := map[string]string{}
	for _, s := range list {
		if s.flaw != "" {
			why[s.Task.ID] = s.flaw
		}
	}
	if err := d.store.Doctor.NoteUnreadable(ctx, why); err != nil {
		d.log.Warn("note unreadable records", "err", err)
	}
}
