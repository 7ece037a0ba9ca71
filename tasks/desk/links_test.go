package desk

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
	"github.com/errand-fleet/errand/tasks/record"
	"github.com/errand-fleet/errand/tasks/rights"
)

// linkedTo links an account in Slack.
func (f *harness) linkedTo(user, login string, until time.Time) {
	body, err := json.Marshal(people.Link{User: user, Name: user, Team: "T1", Login: login, Until: until})
	if err == nil {
		err = f.store.Links.Save(context.Background(), user, body)
	}
	if err != nil {
		panic(err)
	}
}

func withLinks(p *rights.Policy) { p.Rights.Links = true }

// atConsole is a visitor who has logged in at the forge.
func atConsole(ctx context.Context, login string, role policy.Role) context.Context {
	return people.WithVisitor(ctx, people.Visitor{
		Name: "GitHub/" + login, Login: login, Role: role, In: func(context.Context, string) policy.Repo { return policy.Repo{Role: role} },
	})
}

// A linked account has the rights of its account on the forge as they are now: not after it was unlinked or has
// expired, and not if the operator has set another one or permits no links.
func TestPermitLinked(t *testing.T) {
	t.Parallel()
	later := time.Now().Add(time.Hour)
	forgeOf := levels{"dana secret/a": "write", "id dana": 7, "writer secret/a": "write", "reader secret/a": "read"}
	f := limited(t, forgeOf, withLinks)
	permit := func(user string) (agent.Profile, string) {
		t.Helper()
		profile, err := f.permit(f.request("t-"+user, user, "secret/a", "C1"))
		if err != nil && sentence(err) == "" {
			t.Fatal(err)
		}
		return profile, sentence(err)
	}
	const unknown = "I do not know your account on GitHub, so I cannot see what you may do in secret/a. Say /errand link to connect it."
	if p, why := permit("UD"); p != "" || why != unknown {
		t.Errorf("not linked: %q %q", p, why)
	}
	f.linkedTo("UD", "dana", later)
	if p, why := permit("UD"); p != agent.Write {
		t.Errorf("linked: %q %q", p, why)
	}
	body, err := json.Marshal(people.Link{User: "UD", Login: "dana", ID: 7, Until: later})
	if err == nil {
		err = f.store.Links.Save(t.Context(), "UD", body)
	}
	if p, why := permit("UD"); p != agent.Write || err != nil {
		t.Errorf("linked by its number: %q %q, %v", p, why, err)
	}
	forgeOf["id dana"] = 8
	if p, why := permit("UD"); p != "" ||
		why != "dana is now the account of somebody else on GitHub. Say /errand link to connect yours." {
		t.Errorf("a login that somebody else has taken: %q %q", p, why)
	}
	delete(forgeOf, "dana secret/a")
	const renamed = "GitHub finds no account dana, or no repository secret/a. If you have renamed your account, say /errand link."
	if p, why := permit("UD"); p != "" || why != renamed {
		t.Errorf("a login that is no more: %q %q", p, why)
	}
	forgeOf["dana secret/a"] = "none"
	forgeOf["id dana"] = 7
	if p, why := permit("UD"); p != "" || why != "dana has no access to secret/a." {
		t.Errorf("without access: %q %q", p, why)
	}
	forgeOf["dana secret/a"] = "write"
	f.linkedTo("UR", "dana", later) // the operator says: reader
	if p, _ := permit("UR"); p != agent.Read {
		t.Errorf("set by the operator: %q", p)
	}
	f.linkedTo("UX", "writer", later) // the operator says: of UW
	if p, why := permit("UX"); p != "" || why != unknown {
		t.Errorf("another's account: %q %q", p, why)
	}
	f.linkedTo("UD", "dana", time.Now().Add(-time.Second))
	if p, why := permit("UD"); p != "" || why != unknown {
		t.Errorf("expired: %q %q", p, why)
	}
	f.linkedTo("UD", "dana", later)
	f.desk.policy.Rights.Links = false
	if p, why := permit("UD"); p != "" || !strings.Contains(why, "people: in errand.yaml") {
		t.Errorf("switched off: %q %q", p, why)
	}
	f.desk.policy.Rights.Links = true

	// A request that waits loses its rights with the link, also after an edit.
	id := f.submit(f.request("w", "UD", "secret/a", "C1"))
	if found, err := f.desk.Unlink(t.Context(), "UD"); err != nil || !found {
		t.Fatalf("unlink: %t %v", found, err)
	}
	rec, err := f.store.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	task, err := record.Task(rec)
	if err != nil || task.Login != "dana" {
		t.Fatalf("task of %q: %v", task.Login, err)
	}
	if _, err := f.permit(task); sentence(err) != unknown {
		t.Errorf("unlinked while it waited: %v", err)
	}
	if _, err := f.desk.OfferLink(t.Context(),
		people.Link{User: "UW"}); sentence(err) != "An operator has set your account on GitHub: writer." {
		t.Errorf("an offer to a person of the operator's: %v", err)
	}
}

// A person who asks in Slack with a linked account, on GitHub and at the console is one person for limits, budgets and
// lists, and may stop all of their tasks.
func TestLinkedPersonIsOne(t *testing.T) {
	t.Parallel()
	f := limited(t, levels{}, withLinks, func(p *rights.Policy) {
		p.Budgets, p.Limits = rights.Budgets{User: 1}, rights.Limits{User: 1}
		p.Rights.Unmapped = policy.UnmappedAll
	})
	f.linkedTo("UD", "dana", time.Now().Add(time.Hour))
	first := f.submit(f.request("a", "UD", "", "C1"))
	onGitHub := f.task("b", "x")
	onGitHub.Source, onGitHub.Thread, onGitHub.Actor, onGitHub.Repo = "github", "github/b", "dana", "secret/a"
	f.submit(onGitHub)
	here := atConsole(t.Context(), "dana", policy.User)
	chat := f.task("c", "x")
	chat.Source, chat.Thread, chat.Actor = "chat", "chat/c", "GitHub/dana"
	if _, err := f.desk.Submit(here, chat); err != nil {
		t.Fatal(err)
	}
	caps := f.desk.policy.Limits.Caps()
	claim, err := f.store.Claim(t.Context(), first, 0, "w", caps...)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{onGitHub.ID, chat.ID} {
		_, err = f.store.Claim(t.Context(), id, 0, "w", caps...)
		if full, ok := errors.AsType[*store.Full](err); !ok || full.Scope != "user:github/dana" {
			t.Errorf("a second run: %v", err)
		}
	}
	if l, err := f.desk.List(t.Context(), Filter{Person: "slack/UD"}); err != nil || len(l.Tasks) != 3 {
		t.Errorf("%d tasks of hers, %v", len(l.Tasks), err)
	}
	if _, err := f.desk.Cancel(here, onGitHub.ID, "dana"); err != nil {
		t.Errorf("stop her own: %v", err)
	}
	_, err = f.desk.Cancel(atConsole(t.Context(), "eve", policy.User), chat.ID, "eve")
	if _, refused := errors.AsType[*people.RoleError](err); !refused {
		t.Errorf("stop another's: %v", err)
	}
	if _, err := claim.Spend(t.Context(), store.Expense{USD: 1}, f.desk.policy.Budgets.Daily()...); err != nil {
		t.Fatal(err)
	}
	for n, change := range []func(*tasks.Task){
		func(t *tasks.Task) { *t = f.request("d", "UD", "", "C1") },
		func(t *tasks.Task) { t.Source, t.Thread, t.Actor = "github", "github/e", "dana" },
		func(t *tasks.Task) { t.Source, t.Thread, t.Actor = "chat", "chat/f", "GitHub/dana" },
	} {
		next := f.task("next", "x")
		change(&next)
		ctx := t.Context()
		if next.Source == "chat" {
			ctx = here
		}
		if _, err := f.desk.Submit(ctx, next); !strings.HasPrefix(sentence(err), "Your budget for today is used up") {
			t.Errorf("source %d: %v", n, err)
		}
	}
}

// What a person has asked for with one login at the console is theirs with another one, as the operator maps both.
func TestOnePersonWithTwoLogins(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.desk.policy.People = people.People{{Name: "ann", GitHub: "ann-acme", Email: "ann@acme.test"}}
	role := func(context.Context, string) policy.Repo { return policy.Repo{Role: policy.User} }
	byGitHub := people.WithVisitor(t.Context(), people.Visitor{
		Name: "ann@home.test", Person: "ann", Login: "ann-acme", Role: policy.User, In: role,
	})
	byEmail := people.WithVisitor(t.Context(), people.Visitor{Name: "ann@acme.test", Person: "ann", Role: policy.User, In: role})
	task := f.task("a", "x")
	task.Source, task.Thread, task.Actor = "chat", "chat/a", "ann@home.test"
	if _, err := f.desk.Submit(byGitHub, task); err != nil {
		t.Fatal(err)
	}
	if _, err := f.desk.Cancel(byEmail, task.ID, "ann"); err != nil {
		t.Errorf("her own task: %v", err)
	}
}
