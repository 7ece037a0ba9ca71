package desk

import (
	"context"
	"errors"
	"testing"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/tasks/record"
	"github.com/errand-fleet/errand/tasks/rights"
)

// Where runs have no sandbox, only people who may read everything on the machine get tools that execute commands.
func TestUnsandboxed(t *testing.T) {
	t.Parallel()
	broken := errors.New("bad gateway")
	l := levels{
		"writer secret/a": "write", "writer secret/b": "read", "reader secret/a": "read", "octo secret/a": "write",
		"octo secret/b": "admin", "sam secret/a": "write", "sam secret/b": broken,
		"private secret/gone": forge.ErrNotFound,
	}
	some := func(context.Context, string) policy.Repo { return policy.Repo{Role: policy.User} }
	for name, c := range map[string]struct {
		source, actor, repo string
		login               string
		partial, unasked    bool
		retrier             tasks.Asker
		change              func(*rights.Policy)
		want                agent.Profile // "": an error
	}{
		"reads all":         {source: "slack", actor: "UW", repo: "secret/a", want: agent.Write},
		"reads one":         {source: "slack", actor: "UR", repo: "secret/a", want: agent.Read},
		"unmapped, nowhere": {source: "slack", actor: "UX", want: agent.Read},
		"GitHub, all":       {source: "github", actor: "octo", repo: "secret/a", want: agent.Write},
		"GitHub, an event":  {source: "github", actor: "reader", repo: "secret/a", unasked: true, want: agent.Write},
		"the console":       {source: "chat", actor: "console", want: agent.Write},
		"a token for some":  {source: "chat", actor: "token:ci", repo: "secret/a", partial: true, want: agent.Read},
		"a login":           {source: "chat", actor: "reader@x.test", login: "reader", want: agent.Read},
		"errand.yaml":       {source: "schedule", actor: "schedule:x", repo: "secret/a", want: agent.Write},
		"retried by a reader": {
			source: "slack", actor: "UW", retrier: tasks.Asker{Source: "slack", Account: "UR"}, want: agent.Read,
		},
		"retried with a token for some": {
			source: "slack", actor: "UW", retrier: tasks.Asker{Source: "chat", Account: "token:ci", Partial: true},
			want: agent.Read,
		},
		"an event, retried by a reader": {
			source: "github", actor: "octo", unasked: true, retrier: tasks.Asker{Source: "github", Account: "reader"},
			want: agent.Read,
		},
		"a repository is gone": {
			source: "slack", actor: "UW", repo: "secret/a", want: agent.Read,
			change: func(p *rights.Policy) { p.Listed = []string{"secret/a", "secret/gone"} },
		},
		"the forge does not answer": {source: "github", actor: "sam", repo: "secret/a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := limited(t, l, func(p *rights.Policy) { p.Listed = []string{"secret/a", "secret/b"} })
			if c.change != nil {
				c.change(&f.desk.policy)
			}
			task := f.request("a", c.actor, c.repo, "D1")
			task.Source, task.Login, task.Partial, task.Unasked = c.source, c.login, c.partial, c.unasked
			task.Retrier = c.retrier
			got, _, err := f.desk.policy.Permit(t.Context(), f.store, task, false)
			if got != c.want || (err != nil) != (c.want == "") {
				t.Errorf("%q, %v, want %q", got, err, c.want)
			}
			task.Profile = agent.Untrusted
			if got, _, err := f.desk.policy.Permit(t.Context(), f.store, task, false); got != agent.Untrusted || err != nil {
				t.Errorf("untrusted: %q, %v", got, err)
			}
		})
	}
	for name, v := range map[string]people.Visitor{
		"limited to some": {Name: "token:ci", Role: policy.User, In: some},
		"with an account": {Name: "token:ci", Role: policy.User, In: some, Login: "reader"},
		"not limited":     {Name: "token:ci", Role: policy.User},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := limited(t, l)
			ctx, task := people.WithVisitor(t.Context(), v), f.task("a", "x")
			task.Partial = name == "not limited" // whatever the front door says
			if _, err := f.desk.Submit(ctx, task); err != nil {
				t.Fatal(err)
			}
			rec, err := f.store.Get(ctx, task.ID)
			if err == nil {
				task, err = record.Task(rec)
			}
			if err != nil || task.Partial != (name == "limited to some") {
				t.Errorf("partial %t, %v", task.Partial, err)
			}
		})
	}
}

// slackUser returns a context in which a person in Slack acts.
func slackUser(t *testing.T, account string) context.Context {
	t.Helper()
	return context.WithValue(t.Context(), senderKey{}, &acting{Sender: Sender{Source: people.SlackSource, Account: account}})
}

// An answer steers a run, so people who may not start it may not give it.
func TestAnswerToAnUnsandboxedRun(t *testing.T) {
	t.Parallel()
	f := limited(t, levels{"writer secret/a": "write", "reader secret/a": "read"}, func(p *rights.Policy) {
		p.Listed = []string{"secret/a"}
	})
	id := f.submit(f.request("a", "UW", "", "D1"))
	q := tasks.Question{Profile: agent.Write, Unsandboxed: true}
	some := func(context.Context, string) policy.Repo { return policy.Repo{Role: policy.User} }
	for name, c := range map[string]struct {
		ctx context.Context
		may bool
	}{
		"reads all": {slackUser(t, "UW"), true}, "unmapped": {slackUser(t, "UX"), false},
		"reads none": {slackUser(t, "UG"), false},
		"a token":    {people.WithVisitor(t.Context(), people.Visitor{Name: "token:a", Role: policy.User}), true},
		"a token for some": {
			people.WithVisitor(t.Context(), people.Visitor{Name: "token:a", Role: policy.User, In: some}), false,
		},
	} {
		if err := f.desk.policy.PermitAnswer(c.ctx, f.store, askerIn(c.ctx), id, q); (err == nil) != c.may {
			t.Errorf("%s: %v", name, err)
		}
	}
	q.Unsandboxed = false
	by := slackUser(t, "UG")
	if err := f.desk.policy.PermitAnswer(by, f.store, askerIn(by), id, q); err != nil {
		t.Errorf("in a sandbox: %v", err)
	}
}
