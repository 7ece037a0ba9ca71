package desk

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/internal/redisclock"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/tasks/record"
	"github.com/errand-fleet/errand/tasks/rights"
)

// levels are what accounts may do on a forge, by login and repository. An error is what the forge answers instead.
type levels map[string]any

func (levels) Name() string { return "github" }

func (l levels) Permission(_ context.Context, repo, login string) (forge.Permission, error) {
	switch level := l[login+" "+repo].(type) {
	case string:
		return forge.Permission(level), nil
	case error:
		return forge.PermissionNone, level
	}
	return forge.PermissionNone, forge.ErrNotFound
}

func (l levels) AccountID(_ context.Context, _, login string) (int64, error) {
	id, _ := l["id "+login].(int)
	return int64(id), nil
}

func (l levels) Private(_ context.Context, repo string) (bool, error) {
	err, _ := l["private "+repo].(error)
	return strings.HasPrefix(repo, "secret/"), err
}

// limited makes a fleet whose people are limited to what they may do on a forge.
func limited(t *testing.T, l levels, change ...func(*rights.Policy)) *harness {
	t.Helper()
	url, _ := redisclock.AtMidday(t) // budgets are of a day
	f := newFleetOn(t, url)
	p := &f.desk.policy
	p.Rights = &rights.ForgeRights{Forge: l, Unmapped: policy.UnmappedRead, Lists: func(channel, repo string) bool {
		return channel == "C1" && repo == "secret/a"
	}}
	p.People = people.People{{Name: "writer", Slack: "UW", GitHub: "writer"}, {
		Name: "reader", Slack: "UR", GitHub: "reader", Email: "reader@x.test",
	}, {Name: "gone", Slack: "UG", GitHub: "gone"}}
	p.Repository = func(name string) (rights.Repository, bool) {
		return rights.Repository{Open: name == "secret/open"}, true
	}
	for _, c := range change {
		c(p)
	}
	return f
}

// request is a task in Slack.
func (f *harness) request(thread, actor, repo, channel string) tasks.Task {
	t := f.task(thread, "x")
	t.ID = strings.Replace(t.ID, "-fake-", "-slack-", 1)
	t.Source, t.Thread, t.Actor, t.Repo, t.Channel, t.Profile = "slack", "slack/"+
		thread, actor, repo, channel, agent.Write
	return t
}

// permit returns the profile with which a task may run in a sandbox.
func (f *harness) permit(t tasks.Task) (agent.Profile, error) {
	profile, _, err := f.desk.policy.Permit(context.Background(), f.store, t, true)
	return profile, err
}

func sentence(err error) string {
	if input, ok := errors.AsType[*tasks.InputError](err); ok {
		return input.Sentence
	}
	return ""
}

func TestPermit(t *testing.T) {
	t.Parallel()
	limit, broken := &forge.LimitError{At: time.Now().Add(time.Hour), Why: "a limit"}, errors.New("bad gateway")
	l := levels{
		"writer secret/a": "write", "writer public/a": "write", "writer secret/b": "admin", "reader secret/a": "read",
		"writer secret/odd": "triage?", "writer secret/broken": broken, "writer secret/limited": limit,
		"writer secret/closed": &forge.RefusedError{Sentence: "errand may not ask."}, "writer secret/unseen": "write",
		"private secret/unseen": forge.ErrNotFound, "writer secret/dark": "write", "private secret/dark": broken,
		"writer public/unseen": "write", "private public/unseen": forge.ErrNotFound,
	}
	all, refuse := func(p *rights.Policy) { p.Rights.Unmapped = policy.UnmappedAll }, func(p *rights.Policy) {
		p.Rights.Unmapped = policy.UnmappedRefuse
	}
	off := func(p *rights.Policy) { p.Rights.Forge = nil }
	none := func(*rights.Policy) {}
	const (
		private = "is private, and its answers may not be posted in this channel"
		unknown = "I do not know your account on GitHub"
	)
	for name, tc := range map[string]struct {
		change               func(*rights.Policy)
		actor, repo, channel string
		profile              agent.Profile
		why                  string // a refusal
		err                  error
	}{
		"write":                     {none, "UW", "secret/a", "C1", agent.Write, "", nil},
		"a level that is not known": {none, "UW", "secret/odd", "D1", "", "writer has no access", nil},
		"a private one elsewhere":   {none, "UW", "secret/b", "C1", "", private, nil},
		"an unseen one elsewhere":   {none, "UW", "secret/unseen", "C1", "", private, nil},
		"one that may be public":    {none, "UW", "public/unseen", "C1", "", private, nil},
		"unmapped, open":            {none, "UX", "secret/open", "C2", agent.Read, "", nil},
		"refuse: open":              {refuse, "UX", "secret/open", "C2", "", unknown, nil},
		"all: unmapped":             {all, "UX", "secret/b", "C2", agent.Write, "", nil},
		"no forge":                  {off, "UX", "secret/a", "C2", agent.Write, "", nil},
		"the forge does not answer": {none, "UW", "secret/broken", "D1", "", "", broken},
		"nor whether it is private": {none, "UW", "secret/dark", "C1", "", "", broken},
		"the forge has a limit":     {none, "UW", "secret/limited", "D1", "", "", &tasks.ErrLater{}},
		"errand may not ask":        {none, "UW", "secret/closed", "D1", "", "errand may not ask.", nil},
		"the host before the name": {
			func(p *rights.Policy) { p.Host = "git.test" }, "UW", "git.test/secret/a", "C1", agent.Write, "", nil,
		},
		"a repository that is read": {func(p *rights.Policy) {
			p.Repository = func(string) (rights.Repository, bool) { return rights.Repository{Profile: agent.Read}, true }
		}, "UW", "secret/a", "C1", agent.Read, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := limited(t, l, tc.change)
			task, err := f.desk.policy.Apply(f.request("a", tc.actor, tc.repo, tc.channel))
			if err != nil {
				t.Fatal(err)
			}
			profile, err := f.permit(task)
			_, later := errors.AsType[*tasks.ErrLater](err)
			_, wantLater := errors.AsType[*tasks.ErrLater](tc.err)
			why := sentence(err)
			if err == nil && profile != tc.profile || (tc.why == "") != (why == "") || !strings.Contains(why, tc.why) ||
				(err == nil) != (tc.why == "" && tc.err == nil) || later != wantLater ||
				tc.err != nil && !wantLater && !errors.Is(err, tc.err) {
				t.Errorf("%q, %v", profile, err)
			}
		})
	}
}

// People who may not read a repository cannot continue a thread about it, whatever has become of its tasks.
func TestThreadAboutAnotherRepository(t *testing.T) {
	t.Parallel()
	l := levels{
		"writer secret/a": "write", "writer secret/b": "write", "reader secret/b": "write",
	}
	const (
		mayNot  = "This thread has been about a repository that you may not read. Start a new one."
		unknown = "I no longer know which repositories this thread has been about. Start a new one."
	)
	for name, tc := range map[string]struct {
		actor, repo string
		notes       string // about the thread's session; empty: it has none
		why         string
	}{
		"another":      {"UR", "secret/b", `{"repos":["","secret/a"]}`, mayNot},
		"no session":   {"UR", "secret/b", "", ""},
		"not known":    {"UR", "secret/b", `{}`, unknown},
		"not readable": {"UR", "secret/b", `{`, unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := limited(t, l)
			id := f.submit(f.request("a", "UW", "secret/b", "D1")) // the thread's tasks about secret/a have expired
			end := func(delivery int, kind tasks.EndingKind, notes string) {
				claim, err := f.store.Claim(t.Context(), id, delivery, "w")
				if err == nil && notes != "" {
					err = claim.SaveSession(t.Context(), store.Session{ID: "s", Meta: json.RawMessage(notes)})
				}
				if err == nil {
					err = errors.Join(claim.End(t.Context(), tasks.Ending{Kind: kind}.Encode()), claim.Release(t.Context()))
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			end(0, tasks.Answered, tc.notes)
			if _, err := f.desk.Retry(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			end(1, tasks.Refused, "")
			next := f.request("a", tc.actor, tc.repo, "D1")
			f.submit(next)
			_, err := f.permit(next)
			if got := sentence(err); got != tc.why || err != nil && got == "" {
				t.Errorf("%v", err)
			}
		})
	}
}

// A question of a run is answered by people who may do what the run may do.
func TestWhoMayAnswer(t *testing.T) {
	t.Parallel()
	broken := errors.New("bad gateway")
	l := levels{
		"writer secret/a": "write", "reader secret/a": "read", "ann secret/a": "admin", "bob secret/a": "read",
		"away secret/a": broken,
	}
	slack := func(account string) func(*Desk, context.Context, func(context.Context) error) error {
		return func(d *Desk, ctx context.Context, do func(context.Context) error) error {
			return d.As(ctx, Sender{Source: "slack", Account: account}, "answer", "",
				func(ctx context.Context) (bool, error) { return true, do(ctx) })
		}
	}
	github := func(login string) func(*Desk, context.Context, func(context.Context) error) error {
		return func(d *Desk, ctx context.Context, do func(context.Context) error) error {
			return d.As(ctx, Sender{Source: "github", Account: login}, "answer", "",
				func(ctx context.Context) (bool, error) { return true, do(ctx) })
		}
	}
	visitor := func(v people.Visitor) func(*Desk, context.Context, func(context.Context) error) error {
		v.Role = policy.Admin
		return func(_ *Desk, ctx context.Context, do func(context.Context) error) error {
			return do(people.WithVisitor(ctx, v))
		}
	}
	const mayNot = "Only people who may write in secret/a can answer this."
	for name, tc := range map[string]struct {
		as          func(*Desk, context.Context, func(context.Context) error) error
		write, read string // why they may not answer a run's question; *: it is not known
	}{
		"Slack, write":   {slack("UW"), "", ""},
		"Slack, read":    {slack("UR"), mayNot, ""},
		"Slack, revoked": {slack("UG"), "gone has no access to secret/a.", "gone has no access to secret/a."},
		"Slack, unmapped": {
			slack("UX"),
			"I do not know your account on GitHub, so I cannot see what you may do in secret/a. An operator can add you under people: in errand.yaml.", "I do not know your account on GitHub, so I cannot see what you may do in secret/a. An operator can add you under people: in errand.yaml.",
		},
		"GitHub, admin":          {github("ann"), "", ""},
		"GitHub, read":           {github("bob"), mayNot, ""},
		"GitHub, revoked":        {github("eve"), "eve has no access to secret/a.", "eve has no access to secret/a."},
		"GitHub does not answer": {github("away"), "*", "*"},
		"console, mapped":        {visitor(people.Visitor{Name: "reader@x.test"}), mayNot, ""},
		"console, write":         {visitor(people.Visitor{Name: "GitHub/ann", Login: "ann"}), "", ""},
		"console, read":          {visitor(people.Visitor{Name: "GitHub/bob", Login: "bob"}), mayNot, ""},
		"API token":              {visitor(people.Visitor{Name: "token:ci"}), "", ""},
		"console token":          {visitor(people.Visitor{}), "", ""},
	} {
		for profile, want := range map[agent.Profile]string{agent.Write: tc.write, agent.Read: tc.read} {
			t.Run(name+", "+string(profile), func(t *testing.T) {
				t.Parallel()
				f := limited(t, l)
				id := f.submit(f.request("a", "UW", "secret/a", "C1"))
				claim, err := f.store.Claim(t.Context(), id, 0, "w")
				if err != nil {
					t.Fatal(err)
				}
				q, err := json.Marshal(tasks.Question{
					Key: "k", Text: "May I?", Profile: profile, Options: []string{tasks.Approve, tasks.Deny},
				})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := claim.Ask(t.Context(), "k", q); err != nil {
					t.Fatal(err)
				}
				err = tc.as(f.desk, t.Context(), func(ctx context.Context) error {
					_, err := f.desk.Answer(ctx, id, "k", "somebody", tasks.Approve)
					return err
				})
				if unknown := errors.Is(err, broken); unknown != (want == "*") ||
					!unknown && (sentence(err) != want || err != nil && !errors.Is(err, tasks.ErrRefused)) {
					t.Errorf("%v, want %q", err, want)
				}
				asked, lerr := f.desk.Questions(t.Context(), id)
				if lerr != nil || len(asked) != 1 || (asked[0].Answer != nil) != (err == nil) {
					t.Errorf("%+v, %v", asked, lerr)
				}
			})
		}
	}
}

// A task that is retried has the rights of who retries it.
func TestRightsOfWhoRetries(t *testing.T) {
	t.Parallel()
	f := limited(t, levels{"writer secret/a": "write", "reader secret/a": "read", "ann secret/a": "write"})
	id := f.submit(f.request("a", "UR", "secret/a", "C1"))
	by := func(source, account string) func(context.Context, func(context.Context) error) error {
		return func(ctx context.Context, do func(context.Context) error) error {
			return f.desk.As(ctx, Sender{Source: source, Account: account}, "retry", id,
				func(ctx context.Context) (bool, error) { return true, do(ctx) })
		}
	}
	front := func(v people.Visitor) func(context.Context, func(context.Context) error) error {
		v.Role = policy.Admin
		return func(ctx context.Context, do func(context.Context) error) error { return do(people.WithVisitor(ctx, v)) }
	}
	itself := func(ctx context.Context, do func(context.Context) error) error { return do(ctx) }
	for _, step := range []struct {
		name    string
		as      func(context.Context, func(context.Context) error) error
		profile agent.Profile
		why     string
	}{
		{"a writer", by("slack", "UW"), agent.Write, ""},
		{"a person without access", by("slack", "UG"), "", "gone has no access to secret/a."},
		{"an account of GitHub", front(people.Visitor{Name: "GitHub/ann", Login: "ann"}), agent.Write, ""},
		{
			"a stranger at the console", front(people.Visitor{Name: "GitHub/eve", Login: "eve"}), "",
			"eve has no access to secret/a.",
		},
		{"errand", itself, agent.Read, ""},
		{"an operator", front(people.Visitor{}), agent.Write, ""},
	} {
		if _, err := f.desk.Cancel(t.Context(), id, "x"); err != nil {
			t.Fatal(err)
		}
		if err := step.as(t.Context(), func(ctx context.Context) error {
			_, err := f.desk.Retry(ctx, id)
			return err
		}); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		rec, err := f.store.Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		task, err := record.Task(rec)
		if err != nil {
			t.Fatal(err)
		}
		profile, err := f.permit(task)
		if err == nil && profile != step.profile || sentence(err) != step.why {
			t.Errorf("%s: %q, %v", step.name, profile, err)
		}
	}
	if _, err := record.Task(store.Record{
		ID: id, Task: []byte(`{"id":"` + id + `","source":"slack"}`), RetriedBy: []byte("{"),
	}); err == nil {
		t.Error("a task runs although it cannot be read who retried it")
	}
}

// An edit has the rights of its author, also after someone else has retried the task; after a run it is a separate
// task.
func TestRightsOfAnEdit(t *testing.T) {
	t.Parallel()
	for name, ran := range map[string]bool{"before a run": false, "after a run": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := limited(t, levels{"writer secret/a": "write", "reader secret/a": "read"})
			task := f.request("a", "UR", "secret/a", "C1")
			f.submit(task)
			want, prompt := Replaced, "y"
			if ran {
				want, prompt = Corrected, "I have edited my message. It now reads:\n\ny"
				claim, err := f.store.Claim(t.Context(), task.ID, 0, "w")
				if err == nil {
					err = errors.Join(claim.End(t.Context(), tasks.Ending{Kind: tasks.Answered}.Encode()),
						claim.Release(t.Context()))
				}
				if err != nil {
					t.Fatal(err)
				}
			} else if _, err := f.desk.Cancel(t.Context(), task.ID, "x"); err != nil {
				t.Fatal(err)
			}
			err := f.desk.As(t.Context(), Sender{Source: "slack", Account: "UW"}, "retry", task.ID,
				func(ctx context.Context) (bool, error) {
					_, err := f.desk.Retry(ctx, task.ID)
					return true, err
				})
			if err != nil {
				t.Fatal(err)
			}
			task.Prompt = "y"
			if done, err := f.desk.Amend(t.Context(), task, Edit{Key: "1"}); done != want {
				t.Fatal(done, err)
			}
			id := task.ID
			if ran {
				id = tasks.Edited(id, "1")
			}
			rec, err := f.store.Get(t.Context(), id)
			if err == nil {
				task, err = record.Task(rec)
			}
			if err != nil {
				t.Fatal(err)
			}
			if profile, err := f.permit(task); profile != agent.Read ||
				task.Prompt != prompt {
				t.Errorf("%q with %q, %v", task.Prompt, profile, err)
			}
		})
	}
}

// The accounts of a person share their budget and their places.
func TestBudgetOfAPerson(t *testing.T) {
	t.Parallel()
	f := limited(t, levels{}, func(p *rights.Policy) {
		p.Rights = nil
		p.Budgets = rights.Budgets{User: 1}
		p.Limits = rights.Limits{User: 1}
	})
	first := f.submit(f.request("a", "UR", "", "C1"))
	second := f.task("b", "x")
	second.Source, second.Thread, second.Actor = "chat", "chat/b", "reader@x.test"
	f.submit(second)
	claim, err := f.store.Claim(t.Context(), first, 0, "w", f.desk.policy.Limits.Caps()...)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.store.Claim(t.Context(), second.ID, 0, "w", f.desk.policy.Limits.Caps()...)
	if full, ok := errors.AsType[*store.Full](err); !ok || full.Scope != "user:reader" {
		t.Errorf("a second run: %v", err)
	}
	if _, err := claim.Spend(t.Context(), store.Expense{USD: 1}, f.desk.policy.Budgets.Daily()...); err != nil {
		t.Fatal(err)
	}
	third := f.task("c", "x")
	third.Source, third.Thread, third.Actor = "github", "github/c", "READER"
	if _, err := f.desk.Submit(t.Context(), third); !strings.HasPrefix(sentence(err),
		"Your budget for today is used up") {
		t.Errorf("on GitHub: %v", err)
	}
	login := func(name string) context.Context {
		return people.WithVisitor(t.Context(), people.Visitor{Name: "GitHub/" + name, Login: name, Role: policy.Admin})
	}
	third.Source, third.Actor = "chat", "GitHub/Reader"
	if _, err := f.desk.Submit(login("Reader"), third); !strings.HasPrefix(sentence(err),
		"Your budget for today is used up") {
		t.Errorf("at the console: %v", err)
	}
	third.Actor = "GitHub/writer"
	if _, err := f.desk.Submit(login("writer"), third); err != nil {
		t.Error(err)
	}
}

// An answer on the forge is public where its repository is, also that of a run that only reads.
func TestPublicAnswerAfterPrivateWork(t *testing.T) {
	t.Parallel()
	f := limited(t, levels{"writer secret/a": "write", "writer public/a": "write"})
	id := f.submit(f.request("a", "UW", "secret/a", "D1"))
	claim, err := f.store.Claim(t.Context(), id, 0, "w")
	if err == nil {
		err = claim.SaveSession(t.Context(), store.Session{ID: "s", Meta: json.RawMessage(`{"repos":["secret/a"]}`)})
	}
	if err != nil {
		t.Fatal(err)
	}
	task := tasks.Task{ID: id, Thread: claim.Thread(), Repo: "public/a", Profile: agent.Read, Actor: "writer"}
	for source, refused := range map[string]bool{"github": true, "slack": false} {
		task.Source, task.Actor = source, map[string]string{"github": "writer", "slack": "UW"}[source]
		if _, err := f.permit(task); (err != nil) != refused {
			t.Errorf("%s: %v", source, err)
		}
	}
}
