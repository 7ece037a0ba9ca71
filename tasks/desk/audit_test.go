package desk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/people"
)

// deskActions changes something as a person does. Each returns the task that it is about.
var deskActions = map[string]func(f *harness, ctx context.Context) (string, error){
	"Cancel": func(f *harness, ctx context.Context) (string, error) {
		id := f.submit(f.task("a", "x"))
		_, err := f.desk.Cancel(ctx, id, "ann")
		return id, err
	},
	"StopAll": func(f *harness, ctx context.Context) (string, error) {
		t := f.task("a", "x")
		_, _, err := f.desk.StopAll(ctx, t.Thread, f.task("b", "").ID, "ann", func(tasks.Task) bool { return true })
		if err == nil {
			f.submit(t)
			_, _, err = f.desk.StopAll(ctx, t.Thread, f.task("b", "").ID, "ann", func(tasks.Task) bool { return true })
		}
		return t.ID, err
	},
	"Retry": func(f *harness, ctx context.Context) (string, error) {
		id := f.stopped()
		_, err := f.desk.Retry(ctx, id)
		return id, err
	},
	"Repeat": func(f *harness, ctx context.Context) (string, error) {
		id := f.stopped()
		st, err := f.desk.Status(ctx, id)
		if err == nil {
			err = f.desk.Repeat(ctx, st, time.Now().Add(time.Minute))
		}
		return id, err
	},
	"Withdraw": func(f *harness, ctx context.Context) (string, error) {
		id := f.submit(f.task("a", "x"))
		_, err := f.desk.Withdraw(ctx, id)
		return id, err
	},
	"Amend": func(f *harness, ctx context.Context) (string, error) {
		t := f.task("a", "x")
		f.submit(t)
		t.Prompt = "y"
		_, err := f.desk.Amend(ctx, t, Edit{Key: "1"})
		return t.ID, err
	},
	"Answer": func(f *harness, ctx context.Context) (string, error) {
		id := f.asking()
		_, err := f.desk.Answer(ctx, id, "k", "ann", "yes")
		return id, err
	},
	"Take": func(f *harness, ctx context.Context) (string, error) {
		t := f.task("a", "x")
		t.Repo = "acme/api"
		id := f.submit(t)
		if _, err := f.desk.Cancel(f.Context(), id, "ann"); err != nil {
			f.Fatal(err)
		}
		_, err := f.desk.Take(ctx, id, "ann")
		return id, err
	},
	// of a reply to a question; a new task is its own record
	"Submit": func(f *harness, ctx context.Context) (string, error) {
		id := f.asking()
		t := f.task("a", "yes")
		t.ID, t.Reply = tasks.NewID(time.Now(), "fake", "reply"), new(tasks.Reply)
		r, err := f.desk.Submit(ctx, t)
		if err == nil && !r.Answered {
			err = fmt.Errorf("no answer: %+v", r)
		}
		return id, err
	},
}

// deskSilent are the methods that record nothing. People change nothing with most of them. Supersede is automatic, and
// votes and links are no changes of a task: a source records with As what it has done for a person.
var deskSilent = map[string]bool{
	"Affords": true, "As": true, "CastVote": true, "Changes": true, "Costs": true, "Delivered": true, "Depths": true,
	"File": true, "Files": true, "Find": true, "Follow": true, "History": true, "Latest": true, "List": true,
	"Metered": true, "Offer": true, "OfferLink": true, "Open": true, "Overview": true, "PermitNow": true, "PermitReady": true, "Permits": true,
	"Questions": true, "Status": true, "Supersede": true, "Thread": true, "Unlink": true,
}

func (f *harness) stopped() string {
	f.Helper()
	id := f.submit(f.task("a", "x"))
	if _, err := f.desk.Cancel(f.Context(), id, "ann"); err != nil {
		f.Fatal(err)
	}
	return id
}

// asking starts a task that waits for an answer.
func (f *harness) asking() string {
	f.Helper()
	id := f.submit(f.task("a", "x"))
	rec, err := f.store.Get(f.Context(), id)
	if err != nil {
		f.Fatal(err)
	}
	c, err := f.store.Claim(f.Context(), id, rec.Delivery, "worker")
	if err != nil {
		f.Fatal(err)
	}
	q, err := json.Marshal(tasks.Question{Key: "k", Text: "Shall I?"})
	if err != nil {
		f.Fatal(err)
	}
	if _, err := c.Ask(f.Context(), "k", q); err != nil {
		f.Fatal(err)
	}
	return id
}

// Everything that a person changes through the desk on behalf of a source is an entry of the audit log. A new method
// has to be in one of the tables.
func TestEveryActionOfTheDeskIsAudited(t *testing.T) {
	t.Parallel()
	for m := range reflect.TypeFor[*Desk]().Methods() {
		act := deskActions[m.Name]
		if (act != nil) == deskSilent[m.Name] {
			t.Errorf("say in this test whether people change something with Desk.%s", m.Name)
		}
		if act == nil {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			var id string
			by := Sender{Source: "fake", Account: "U1", Name: func(context.Context) string { return "Ann" }}
			err := f.desk.As(t.Context(), by, "unused", "", func(ctx context.Context) (_ bool, err error) {
				id, err = act(f, ctx)
				return true, err
			})
			if err != nil {
				t.Fatal(err)
			}
			list, err := f.store.Audit.List(t.Context(), 0, 10)
			if err != nil || len(list) != 1 {
				t.Fatalf("%d entries, %+v", len(list), err)
			}
			var e AuditEntry
			if err := json.Unmarshal(list[0].Body, &e); err != nil {
				t.Fatal(err)
			}
			if e.Who != "fake/U1" || e.Name != "Ann" || e.From != "fake" || e.What == "unused" || e.Status != 200 ||
				e.Result != "/tasks/"+id || (e.Answer == "3 characters") != (m.Name == "Answer" || m.Name == "Submit") {
				t.Errorf("%+v", e)
			}
			door := newFleet(t) // the front door records its requests itself
			if _, err := act(door, t.Context()); err != nil {
				t.Fatal(err)
			}
			if list, err := door.store.Audit.List(t.Context(), 0, 10); err != nil || len(list) != 0 {
				t.Errorf("%d entries, %+v", len(list), err)
			}
		})
	}
}

// The audit log has the words of an approval and of a chosen option, but not what people write.
func TestRecordedAnswer(t *testing.T) {
	t.Parallel()
	options := []string{"red", "blue"}
	for _, c := range []struct {
		q            tasks.Question
		answer, want string
	}{
		{tasks.Question{Options: options}, "blue", "blue"},
		{tasks.Question{Options: options}, "grün", "4 characters"},
		{tasks.Question{}, "my password", "11 characters"},
		{tasks.Question{Consent: "Bash", Options: []string{tasks.Approve, tasks.Deny}}, "Deny: not now", "Deny: not now"},
	} {
		if got := recorded(c.q, c.answer); got != c.want {
			t.Errorf("%q to %+v is recorded as %q, want %q", c.answer, c.q, got, c.want)
		}
	}
}

// What people write is cut between two letters.
func TestLongAuditEntry(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	RecordAudit(t.Context(), f.store.Audit, slog.New(slog.DiscardHandler), AuditEntry{What: "a" + strings.Repeat("ü", maxAudited)})
	stored, err := f.store.Audit.List(t.Context(), 0, 1)
	var e AuditEntry
	if err != nil || json.Unmarshal(stored[0].Body, &e) != nil || e.What != "a"+strings.Repeat("ü", maxAudited/2-1) {
		t.Errorf("%+v, %v", e, err)
	}
}

// What a source refuses, and what it changes elsewhere, is one entry. What changes nothing is none.
func TestAuditedOutsideOfTheDesk(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	by := Sender{Source: "fake", Account: "U1"}
	for _, row := range []struct {
		changed bool
		err     error
		status  int
	}{
		{true, nil, 200},
		{false, nil, 0},
		{false, tasks.ErrRefused, 403},
		{false, &people.RoleError{}, 403},
		{false, &tasks.InputError{}, 409},
		{false, tasks.ErrNotFound, 404},
		{false, context.Canceled, 500},
		{false, fmt.Errorf("%w: %w", tasks.ErrRefused, &tasks.InputError{}), 403},
	} {
		before, err := f.store.Audit.List(t.Context(), 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.desk.As(t.Context(), by, "pause", "a/b#1", func(context.Context) (bool, error) {
			return row.changed,
				row.err
		}); !errors.Is(err, row.err) {
			t.Errorf("got %+v, want %+v", err, row.err)
		}
		after, err := f.store.Audit.List(t.Context(), 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		var e AuditEntry
		if len(after) > len(before) {
			if err := json.Unmarshal(after[0].Body, &e); err != nil {
				t.Fatal(err)
			}
		}
		if e.Status != row.status || e.Status > 0 && (e.What != "pause a/b#1" || e.Who != "fake/U1") {
			t.Errorf("%+v: %+v", row, e)
		}
	}
}
