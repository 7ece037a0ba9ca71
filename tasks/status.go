package tasks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/internal/format"
	"github.com/errand-fleet/errand/tasks/policy"
)

// Status describes a task at one moment.
type Status struct {
	Task     Task          `json:"task"`
	Person   string        `json:"person,omitempty"`   // the asker's configured name; see People
	State    string        `json:"state"`              // waiting, running, absorbed, ended
	Into     string        `json:"into,omitempty"`     // the task whose run absorbed this one and has its log and answer
	Pool     string        `json:"pool,omitempty"`     // whose workers run it; empty: the default one
	Position int           `json:"position,omitempty"` // in line for a limit; else tasks of its thread before it
	Attempt  int           `json:"attempt"`
	Delivery string        `json:"delivery"` // the asynq ID of its latest delivery
	Worker   string        `json:"worker,omitempty"`
	Runs     []store.Run   `json:"runs,omitempty"` // the latest since it was last retried, oldest first
	Created  time.Time     `json:"created"`
	Started  time.Time     `json:"started,omitzero"`
	Ended    time.Time     `json:"ended,omitzero"`
	Retried  time.Time     `json:"retried,omitzero"`    // when it was last retried
	At       time.Time     `json:"not_before,omitzero"` // the earliest start of a waiting task
	Why      string        `json:"why,omitempty"`       // why it waits, as a clause; also set while a run starts
	Blocked  store.Blocked `json:"-"`                   // the same for the console
	Unable   bool          `json:"-"`                   // Why is that no worker may or can run it
	Cancel   string        `json:"cancelled_by,omitempty"`
	Ending   *Ending       `json:"ending,omitempty"`
	CostUSD  float64       `json:"cost_usd,omitempty"` // of all runs that are settled, also those before a retry
	Settled  bool          `json:"-"`                  // CostUSD has that of the latest run

	Questions []Question `json:"questions,omitempty"` // open questions of a running task
	Posted    bool       `json:"posted"`              // the final message was posted
	Unposted  string     `json:"unposted,omitempty"`  // that and why people do not have it in its place, as a clause
	Votes     []Vote     `json:"votes,omitempty"`     // on the answer; not in lists

	Unreadable string `json:"unreadable,omitempty"` // why the record cannot be read, and a remedy; also in the prompt
	flaw       string // the same without the ID and the remedy
}

// Name returns the name of the person who asked for the task: the configured one, the source's or the account.
func (s Status) Name() string { return cmp.Or(s.Person, s.Task.Name, s.Task.Actor) }

// Spent returns the known cost of the task. An absorbed one has that of the run that absorbed it.
func (s Status) Spent() float64 {
	if s.Ending == nil {
		return s.CostUSD
	}
	return max(s.CostUSD, s.Ending.CostUSD())
}

// Stopping reports whether the task's run has been cancelled and has not ended yet.
func (s Status) Stopping() bool {
	return s.Ending == nil && s.Cancel != "" && (s.State == string(store.Running) || s.Into != "")
}

// Status returns the status of one task, or ErrNotFound.
func (d *Desk) Status(ctx context.Context, id string) (Status, error) {
	rec, err := d.store.Get(ctx, id)
	if err != nil {
		return Status{}, d.notFound(id, err)
	}
	s, err := d.complete(ctx, rec)
	if denied := d.policy.People.permit(ctx, s.Task, policy.See); denied != nil {
		return Status{}, denied
	}
	return s, err
}

// complete returns the status of a record, including what is stored outside the record.
func (d *Desk) complete(ctx context.Context, rec store.Record) (Status, error) {
	list := []Status{d.status(rec)}
	s := &list[0]
	if s.flaw != "" {
		return *s, nil
	}
	var err error
	switch rec.State {
	case store.Waiting:
		if err = d.notePlaces(ctx, []store.Record{rec}, list); err == nil {
			d.noteUnable(ctx, list)
		}
	case store.Running:
		err = d.askOpen(ctx, []store.Record{rec}, list)
	case store.Ended:
		s.Votes, err = readVotes(ctx, d, s.Task)
	}
	if rec.Into != "" {
		err = d.shared(ctx, s)
	}
	return *s, err
}

// status returns the status of a record. If the record cannot be read, the prompt and the ending say so.
func (d *Desk) status(rec store.Record) Status {
	t, err := ReadTask(rec)
	if err != nil {
		t = Task{
			ID: rec.ID, Source: SourceOf(rec.ID), Kind: "unreadable", Thread: rec.Thread, Class: rec.Class,
			Prompt: err.Error(),
		}
	}
	s := Status{
		Task: t, Pool: rec.Pool, State: string(rec.State), Attempt: rec.Attempt,
		Delivery: DeliveryID(rec.ID, rec.Delivery), Worker: rec.Worker, Cancel: rec.CancelBy, Into: rec.Into,
		Created: rec.Created, Started: rec.Started, Ended: rec.Ended, Retried: rec.Retried, Runs: rec.Runs,
		Blocked: rec.Blocked, Posted: rec.Shown || rec.Outbox < 0 && rec.Undelivered == "",
		Unposted: unposted(rec, time.Now()), CostUSD: rec.Cost, Settled: rec.Settled,
	}
	if one, ok := d.policy.People.Author(t); ok {
		s.Person = one.Name
	}
	if s.Why = reason(rec); rec.State == store.Waiting {
		s.At = rec.At
	}
	ending, broken := ReadEnding(rec)
	s.Ending = ending
	if bad, ok := errors.AsType[*UnreadableError](errors.Join(err, broken)); ok {
		s.Unreadable, s.flaw = bad.Error(), bad.Why
		if rec.Unreadable != "" { // the state is unreliable, and the task will never run
			s.State = string(store.Ended)
		}
		if s.Ending == nil && s.State == string(store.Ended) {
			s.Ending = &Ending{Kind: Failed, Reason: s.Unreadable, At: rec.Ended}
		}
	}
	return s
}

// shared completes the status of an absorbed task with its host's: the worker, the start and the whole ending, which
// only the host stores. If the host was retried or has expired, the task's own short ending remains.
func (d *Desk) shared(ctx context.Context, s *Status) error {
	rec, err := d.store.Get(ctx, s.Into)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("task %s: %w", s.Into, err)
	}
	host := d.status(rec)
	switch {
	case s.Ending == nil:
		s.Started, s.Worker, s.Attempt = host.Started, host.Worker, host.Attempt
		s.Cancel = cmp.Or(s.Cancel, host.Cancel)
	case host.Ending != nil && host.Ending.At.Equal(s.Ending.At):
		s.Started, s.Worker, s.Attempt, s.Ending = host.Started, host.Worker, host.Attempt, host.Ending
		s.Posted, s.Unposted = host.Posted, host.Unposted
	}
	return nil
}

// PostingTime is how long posting a final message may take without being mentioned.
const PostingTime = time.Minute

// unposted returns, as a clause, that people do not have the final message of a task in its place, and why; empty if
// they have it, or will soon.
func unposted(rec store.Record, now time.Time) string {
	switch {
	case rec.State != store.Ended || rec.Shown || rec.Into != "":
		return ""
	case rec.Undelivered != "":
		return "answer not delivered: " + rec.Undelivered
	case rec.Outbox < 0:
		return ""
	case rec.Unposted != "":
		return "answer not posted yet: " + rec.Unposted
	case now.Sub(rec.Ended) > PostingTime:
		return "answer not posted yet"
	}
	return ""
}

// noWorker is the reason of a waiting task that no worker has claimed or postponed yet.
const noWorker = "no worker is free yet"

// reason returns why a task waits, as a clause for people. Every view shows the same clause. It is empty for a task
// that does not wait.
func reason(rec store.Record) string {
	switch {
	case rec.State == store.Running:
		return rec.Why // claimed, but its work has not begun
	case rec.State != store.Waiting:
		return ""
	case rec.Blocked != (store.Blocked{}):
		return BlockedBy(rec.Blocked)
	case rec.Why != "":
		return rec.Why
	}
	return noWorker
}

// notePlaces adds the places of waiting tasks in the lines that they wait in, and says them as the reasons.
func (d *Desk) notePlaces(ctx context.Context, records []store.Record, list []Status) error {
	places, err := d.store.Places(ctx, records)
	if err != nil {
		return err
	}
	for i := range list {
		s, place := &list[i], places[i]
		s.Position = place
		switch {
		case place == 0:
		case s.Why == noWorker: // no worker has looked at it yet
			s.Why = BlockedBy(store.Blocked{Place: place})
		case s.Blocked != (store.Blocked{}):
			s.Blocked.Place = place
			s.Why = BlockedBy(s.Blocked)
		}
	}
	return nil
}

// BlockedBy explains, as a clause, why a task could not be claimed.
func BlockedBy(b store.Blocked) string {
	switch {
	case b.Scope != "":
		return fmt.Sprintf("%s in line; %d of %d runs busy %s", ordinal(b.Place), b.Runs, b.Max, inScopeOf(b.Scope))
	case b.Place <= 1:
		return "an earlier task of this thread is running"
	}
	return fmt.Sprintf("%d tasks of this thread come first", b.Place)
}

// ordinal formats a place, such as 2nd.
func ordinal(n int) string {
	suffix := "th"
	if last := n % 10; last < 4 && n/10%10 != 1 {
		suffix = []string{"th", "st", "nd", "rd"}[last]
	}
	return fmt.Sprint(n, suffix)
}

// inScopeOf names a scope for people.
func inScopeOf(scope string) string {
	switch kind, name, _ := strings.Cut(scope, ":"); kind + ":" {
	case repoScope:
		return "in " + name
	case userScope:
		return "for the same person"
	}
	return "with the model account"
}

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
	linked       string     // their account on the forge
	Channel      string     // its name in any source, or with a source like Person
	Ending       EndingKind // how it ended
	Text         string     // part of the prompt or the ID; case does not matter
	Class        string     // the class of its queue
	Pool         string     // the name of its pool, also of the default one
	Days         int        // asked for today, in UTC, or on the so many days up to it; 0: at any time
}

// Listing is a page of tasks, newest first.
type Listing struct {
	Tasks []Status
	// Next is Before for the next page; empty if none exists. If the page has fewer tasks than the limit, Next is
	// where the listing stopped examining tasks.
	Next string
}

// List returns the newest tasks that match a filter.
func (d *Desk) List(ctx context.Context, f Filter) (Listing, error) {
	if user, ok := strings.CutPrefix(f.Person, slackSource+"/"); ok {
		var err error
		if f.linked, _, err = d.policy.linked(ctx, d.store, user); err != nil {
			return Listing{}, fmt.Errorf("list tasks: %w", err)
		}
	}
	page, err := d.store.List(ctx, f.query(d.policy.People, d.policy.People.visible(ctx)))
	if err != nil {
		return Listing{}, fmt.Errorf("list tasks: %w", err)
	}
	list, err := statuses(ctx, d, page.Records)
	if err != nil {
		return Listing{}, fmt.Errorf("list tasks: %w", err)
	}
	return Listing{Tasks: list, Next: page.Next}, nil
}

// statuses returns the status of each record, with its open questions.
func statuses(ctx context.Context, d *Desk, records []store.Record) ([]Status, error) {
	list := make([]Status, 0, len(records))
	for _, rec := range records {
		list = append(list, d.status(rec))
	}
	if err := d.askOpen(ctx, records, list); err != nil {
		return nil, err
	}
	if err := d.notePlaces(ctx, records, list); err != nil {
		return nil, err
	}
	d.noteUnreadable(ctx, list)
	d.noteUnable(ctx, list)
	return list, nil
}

// query converts the filter for the store.
func (f Filter) query(people People, sees func(scopes []string) bool) store.ListQuery {
	q := store.ListQuery{State: store.State(f.State), Limit: f.Limit, Before: f.Before, Look: lookQuickly}
	if f.Days > 0 {
		q.Since = time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 1-f.Days)
	}
	if f.Source+f.Repo+f.Person+f.Channel+f.Class+f.Pool != "" || sees != nil {
		persons := people.filter(f.Person)
		if f.linked != "" {
			persons = append(persons, people.filter(forgeSource+"/"+f.linked)...)
		}
		q.Head = func(r store.Record) bool {
			return (f.Source == "" || f.Source == SourceOf(r.ID)) && (f.Class == "" || f.Class == r.Class) &&
				(f.Pool == "" || f.Pool == PoolName(r.Pool)) && within(r.Scopes, f.Repo, persons, f.Channel) &&
				(sees == nil || sees(r.Scopes))
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

// within reports whether scopes contain the repository, one of the persons and the channel. The persons are from
// [People.filter]. An empty argument matches anything.
func within(scopes []string, repo string, persons []string, channel string) bool {
	asked := func(person string) bool {
		name, exact := strings.CutPrefix(person, userScope)
		return inScope(scopes, userScope, format.OneWord(name), exact)
	}
	return (repo == "" || inScope(scopes, repoScope, repo, true)) &&
		(len(persons) == 0 || slices.ContainsFunc(persons, asked)) &&
		(channel == "" || inScope(scopes, channelScope, format.OneWord(channel), false))
}

// SourceOf returns the source in a task's ID.
func SourceOf(id string) string {
	_, rest, _ := strings.Cut(id, "-")
	source, _, _ := strings.Cut(rest, "-")
	return source
}

// inScope reports whether one of the scopes has that kind and name. Unless exact, a name without a source matches that
// name in every source.
func inScope(scopes []string, kind, name string, exact bool) bool {
	for _, s := range scopes {
		of, ok := strings.CutPrefix(s, kind)
		_, bare, _ := strings.Cut(of, "/")
		if ok && (strings.EqualFold(of, name) || !exact && strings.EqualFold(bare, name)) {
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
