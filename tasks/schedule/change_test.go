package schedule

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/intake"
)

// visitor returns a context of someone with a role in the repositories of acme, and with another one elsewhere.
func visitor(t *testing.T, acme, elsewhere tasks.Role) context.Context {
	t.Helper()
	return tasks.WithVisitor(t.Context(), tasks.Visitor{
		Name: "ann", Role: max(acme, elsewhere),
		In: func(_ context.Context, repo string) tasks.Role {
			if strings.HasPrefix(repo, "acme/") {
				return acme
			}
			return elsewhere
		},
	})
}

// A schedule that was made at one front door runs at all of them, once each time, until it is removed.
func TestMadeSchedule(t *testing.T) {
	t.Parallel()
	f := newFleet(t, utc("2026-05-01 12:30"), tasks.Policy{Host: "github.com"})
	var doors []*door
	for range 3 {
		doors = append(doors, f.start(tasks.Policy{Host: "github.com"}, 0))
	}
	operator := visitor(t, tasks.Operator, tasks.Viewer)
	d := Schedule{
		Name: "nightly", When: hourly, Prompt: " Go. ", Repo: "github.com/acme/api", By: "forged",
		Made: utc("2020-01-01 00:00"),
	}
	made, err := doors[0].PutSchedule(operator, d)
	if err != nil || made.By != "ann" || !made.Made.Equal(f.clock()) || made.Repo != "acme/api" ||
		made.Prompt != "Go." || made.Profile != agent.Write || !made.Next.Equal(utc("2026-05-01 13:00")) {
		t.Fatalf("made %+v: %v", made, err)
	}
	f.look(utc("2026-05-01 13:00"))
	first := f.created()
	if len(first) != 1 || f.Status(first[0]).Task.Repo != "acme/api" {
		t.Fatalf("at its time: %v", first)
	}
	f.end(first[0], tasks.Answered)

	d.Prompt = "Stop."
	if changed, err := doors[1].PutSchedule(operator, d); err != nil || !changed.Made.Equal(made.Made) ||
		changed.Task != first[0] {
		t.Errorf("changed %+v: %v", changed, err)
	}
	f.look(utc("2026-05-01 14:00"))
	second := f.created()
	if len(second) != 1 || f.Status(second[0]).Task.Prompt != "Stop." {
		t.Fatalf("after a change of its prompt: %v", second)
	}
	f.end(second[0], tasks.Answered)

	if err := doors[2].DropSchedule(operator, "nightly"); err != nil {
		t.Fatal(err)
	}
	f.look(utc("2026-05-01 15:00"))
	if new := f.created(); len(new) > 0 {
		t.Errorf("after its removal: %v", new)
	}
	if err := doors[2].DropSchedule(operator, "nightly"); !errors.Is(err, tasks.ErrNotFound) {
		t.Errorf("removed again: %v", err)
	}

	f.look(utc("2026-05-01 17:30"))
	if _, err := doors[0].PutSchedule(operator, d); err != nil { // the times since its removal are not missed ones
		t.Fatal(err)
	}
	f.look(utc("2026-05-01 17:31"))
	if new := f.created(); len(new) > 0 {
		t.Errorf("made again with the same name: %v", new)
	}
	f.look(utc("2026-05-01 18:00"))
	if new := f.created(); len(new) != 1 {
		t.Errorf("at its next time: %v", new)
	}
}

// A schedule does not start the task that a removed one of the same name was about to submit.
func TestMadeAgainWhileClaimed(t *testing.T) {
	t.Parallel()
	f := newFleet(t, utc("2026-05-01 12:30"), tasks.Policy{})
	d := f.start(tasks.Policy{}, 0)
	made := Schedule{Name: "x", When: hourly, Prompt: "Go.", Repo: "acme/api"}
	if _, err := d.PutSchedule(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	all, err := d.all(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	st, err := all[0].current(t.Context())
	if err == nil {
		_, err = all[0].claim(t.Context(), st, utc("2026-05-01 13:00"))
	}
	if err == nil {
		err = d.DropSchedule(t.Context(), "x")
	}
	if err != nil {
		t.Fatal(err)
	}
	f.look(utc("2026-05-01 13:01"))
	made.Repo, made.Prompt = "acme/web", "Another."
	if _, err := d.PutSchedule(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	f.look(utc("2026-05-01 13:02"))
	if new := f.created(); len(new) > 0 {
		t.Errorf("started %v at once", new)
	}
	f.look(utc("2026-05-01 14:00"))
	if new := f.created(); len(new) != 1 || f.Status(new[0]).Task.Prompt != "Another." {
		t.Errorf("at its time: %v", new)
	}
}

// Only operators of the repositories that a schedule had and gets may change it, and errand.yaml wins.
func TestWhoMayChangeASchedule(t *testing.T) {
	t.Parallel()
	f := newFleet(t, utc("2026-05-01 12:30"), tasks.Policy{Host: "github.com"})
	s := f.start(tasks.Policy{Host: "github.com"}, 0, Schedule{Name: "fixed", When: hourly, Prompt: "Go."})
	d := Schedule{Name: "x", When: hourly, Prompt: "Go.", Repo: "acme/api"}
	for name, tc := range map[string]struct {
		visitor context.Context //nolint:containedctx // of one request
		change  func(*Schedule)
		want    error
	}{
		"a user":     {visitor(t, tasks.User, tasks.Operator), func(*Schedule) {}, new(tasks.RoleError)},
		"a stranger": {visitor(t, tasks.Anyone, tasks.Operator), func(*Schedule) {}, new(tasks.RoleError)},
		"a stranger, by its host": {
			visitor(t, tasks.Anyone, tasks.Operator), func(d *Schedule) { d.Repo = "github.com/acme/api" },
			new(tasks.RoleError),
		},
		"a stranger outside": {
			visitor(t, tasks.Operator, tasks.Anyone), func(d *Schedule) { d.Repo = "" }, new(tasks.RoleError),
		},
		"no repository": {
			visitor(t, tasks.Operator, tasks.User), func(d *Schedule) { d.Repo = "" }, new(tasks.RoleError),
		},
		"of errand.yaml": {
			visitor(t, tasks.Admin, tasks.Admin), func(d *Schedule) { d.Name = "fixed" }, new(tasks.InputError),
		},
	} {
		changed := d
		tc.change(&changed)
		if _, err := s.PutSchedule(tc.visitor, changed); !sameKind(err, tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.PutSchedule(visitor(t, tasks.Operator, tasks.Anyone), d); err != nil {
		t.Fatal(err)
	}
	d.Repo = "other/web"
	elsewhere := visitor(t, tasks.Viewer, tasks.Operator)
	if _, err := s.PutSchedule(elsewhere, d); !sameKind(err, new(tasks.RoleError)) {
		t.Errorf("taken to another repository: %v", err)
	}
	if _, err := s.PutSchedule(visitor(t, tasks.Anyone, tasks.Operator), d); !sameKind(err, new(tasks.InputError)) ||
		!strings.Contains(err.Error(), "is taken") {
		t.Errorf("a name in a hidden repository: %v", err)
	}
	if err := s.DropSchedule(elsewhere, "x"); !sameKind(err, new(tasks.RoleError)) {
		t.Errorf("removed by a viewer: %v", err)
	}
	if err := s.DropSchedule(visitor(t, tasks.Anyone, tasks.Operator), "x"); !errors.Is(err, tasks.ErrNotFound) {
		t.Errorf("removed by a stranger: %v", err)
	}
	if err := s.DropSchedule(t.Context(), "fixed"); !sameKind(err, new(tasks.InputError)) {
		t.Errorf("removed from errand.yaml: %v", err)
	}
}

// sameKind reports whether err is want, or an error of the same type.
func sameKind(err, want error) bool {
	_, role := errors.AsType[*tasks.RoleError](err)
	_, input := errors.AsType[*tasks.InputError](err)
	_, wantRole := errors.AsType[*tasks.RoleError](want)
	_, wantInput := errors.AsType[*tasks.InputError](want)
	return errors.Is(err, want) || role && wantRole || input && wantInput
}

// Bad input is refused with what is wrong, and changes nothing.
func TestInvalidSchedules(t *testing.T) {
	t.Parallel()
	policy := tasks.Policy{Repository: func(name string) (tasks.Repository, bool) {
		return tasks.Repository{}, name == "acme/api"
	}}
	f := newFleet(t, utc("2026-05-01 12:30"), policy)
	s := f.start(policy, 0)
	for want, change := range map[string]func(*Schedule){
		"name":         func(d *Schedule) { d.Name = "Not a name" },
		"no prompt":    func(d *Schedule) { d.Prompt = " \n" },
		"profile":      func(d *Schedule) { d.Profile = "untrusted" },
		"branch":       func(d *Schedule) { d.Repo, d.Branch = "", "next" },
		"a b..c":       func(d *Schedule) { d.Branch = "a b..c" },
		"refs/pull/7":  func(d *Schedule) { d.Branch = "refs/pull/7/head" }, // may be of a fork
		"amount":       func(d *Schedule) { d.MaxUSD = -1 },
		"dollars":      func(d *Schedule) { d.MaxUSD = 1e10 },
		"Slack":        func(d *Schedule) { d.Results = "C0123ABCD" }, // not configured
		"every week":   func(d *Schedule) { d.When = "sometimes" },
		"acme/secrets": func(d *Schedule) { d.Repo = "acme/secrets" },
	} {
		d := Schedule{Name: "x", When: hourly, Prompt: "Go.", Repo: "acme/api"}
		change(&d)
		_, err := s.PutSchedule(t.Context(), d)
		if mistake, ok := errors.AsType[*tasks.InputError](err); !ok || !strings.Contains(mistake.Sentence, want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if list, err := s.Schedules(t.Context()); len(list) > 0 || err != nil {
		t.Errorf("stored %+v: %v", list, err)
	}
}

// What another version has written, or errand.yaml hides, stays until people remove it, and the other schedules still
// run.
func TestUnreadableSchedule(t *testing.T) {
	t.Parallel()
	f := newFleet(t, utc("2026-05-01 12:30"), tasks.Policy{})
	s := f.start(tasks.Policy{}, 0, Schedule{Name: "d", When: "0 0 1 1 *", Prompt: "Go."})
	var log bytes.Buffer
	s.log = slog.New(slog.NewTextHandler(&log, nil))
	for name, body := range map[string]string{
		"a": `[`, "b": `{"name": "b", "when": "at full moon", "prompt": "Go."}`,
		"c": `{"name": "c", "when": "every hour", "prompt": "Go."}`,
		"d": `{"name": "d", "when": "every hour", "prompt": "Go.", "repo": "acme/api"}`,
	} {
		if err := f.Store.Access.Save(t.Context(), list, name, json.RawMessage(body)); err != nil {
			t.Fatal(err)
		}
	}
	f.look(utc("2026-05-01 12:30"))
	f.look(utc("2026-05-01 13:00"))
	if new := f.created(); len(new) != 1 || !strings.HasSuffix(new[0], "-c") {
		t.Errorf("created %v", new)
	}
	if shown, err := s.Schedules(t.Context()); len(shown) != 2 || err != nil {
		t.Errorf("shown %+v: %v", shown, err)
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 3 {
		t.Errorf("%d warnings in some looks:\n%s", n, &log)
	}
	elsewhere := visitor(t, tasks.Anyone, tasks.Operator)
	if err := s.DropSchedule(elsewhere, "d"); !errors.Is(err, tasks.ErrNotFound) {
		t.Errorf("removed by a stranger: %v", err)
	}
	for _, name := range []string{"a", "b", "d"} {
		if err := s.DropSchedule(t.Context(), name); err != nil {
			t.Errorf("remove %s: %v", name, err)
		}
	}
	if err := s.DropSchedule(t.Context(), "d"); !sameKind(err, new(tasks.InputError)) {
		t.Errorf("removed from errand.yaml: %v", err)
	}
}

// told is a board.
type told struct{ notices []tasks.Notice }

func (b *told) Tell(_ context.Context, n tasks.Notice) error {
	b.notices = append(b.notices, n)
	return nil
}

// The ending of a task is posted to the channel of its schedule.
func TestResults(t *testing.T) {
	t.Parallel()
	f := newFleet(t, utc("2026-05-01 12:30"), tasks.Policy{})
	d := f.start(tasks.Policy{}, 0, Schedule{Name: "loud", When: hourly, Prompt: "Go.", Results: "C0123ABCD"},
		Schedule{Name: "quiet", When: hourly, Prompt: "Go."})
	board, log := &told{}, &bytes.Buffer{}
	d.cfg.Results = intake.Results{Board: board, Log: slog.New(slog.NewTextHandler(log, nil))}
	d.cfg.Results.May = func(context.Context, string, string) (bool, error) { return true, nil }
	f.look(utc("2026-05-01 12:30"))
	f.look(utc("2026-05-01 13:00"))
	new := f.created()
	if len(new) != 2 {
		t.Fatal(new)
	}
	for _, id := range new {
		report, err := d.Open(t.Context(), f.Status(id).Task)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range []tasks.Ending{
			{Kind: tasks.Answered, Result: agent.Result{Text: "Done it."}, At: time.Now()},
			{Kind: tasks.Refused, Reason: "No."},
			{Kind: tasks.Withdrawn},
		} {
			if err := report.Close(t.Context(), e); err != nil {
				t.Error(err)
			}
		}
	}
	if len(board.notices) != 2 {
		t.Fatalf("posted %+v", board.notices)
	}
	if log.Len() > 0 {
		t.Errorf("logged %s", log)
	}
	d.cfg.Results.May = func(context.Context, string, string) (bool, error) { return false, nil }
	for _, id := range new {
		report, err := d.Open(t.Context(), f.Status(id).Task)
		if err == nil {
			err = report.Close(t.Context(), tasks.Ending{Kind: tasks.Answered})
		}
		if err != nil || len(board.notices) != 2 {
			t.Errorf("no longer permitted: %v, posted %+v", err, board.notices[2:])
		}
	}
	said := log.String()
	if strings.Count(said, "\n") != 1 || !strings.Contains(said, "-loud channel=C0123ABCD repository=") {
		t.Errorf("logged %q", said)
	}
	d.cfg.Results.Board = nil // of a worker without Slack: another one posts it
	report, err := d.Open(t.Context(), f.Status(new[0]).Task)
	if err == nil {
		err = report.Close(t.Context(), tasks.Ending{Kind: tasks.Answered})
	}
	if !errors.Is(err, tasks.ErrNotHere) {
		t.Errorf("without Slack: %v", err)
	}
	one, two := board.notices[0], board.notices[1]
	if one.Channel != "C0123ABCD" || one.Headline != "Schedule loud" || one.Body != "Done it." ||
		two.Headline != "Schedule loud: No." {
		t.Errorf("posted %+v", board.notices)
	}
}
