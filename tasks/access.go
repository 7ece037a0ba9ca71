package tasks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/internal/format"
	"github.com/errand-fleet/errand/tasks/policy"
)

// Role is what a visitor of the front door may do.
type Role = policy.Role

// The roles.
const (
	Anyone, Guest, Viewer = policy.Anyone, policy.Guest, policy.Viewer
	User, Operator, Admin = policy.User, policy.Operator, policy.Admin
)

// Visitor is who makes a request at the front door. The desk shows a visitor only what they may see, and does for them
// only what they may do. A context without a visitor belongs to errand itself and is not restricted.
type Visitor struct {
	Name   string // recorded with what they do
	Method string // how they authenticated, such as "token" or "proxy"
	Person string // their name in [People]; empty if unknown
	Login  string // on the forge; empty if unknown
	Role   Role   // the highest that they have anywhere

	Task    string    // the only task that a guest sees
	Until   time.Time // when a guest's link ends
	Session bool      // the visitor has a session, which a log-out ends
	Agent   bool      // an agent makes the request on their behalf, by the MCP server

	// In returns what is known of the visitor's role in a repository; "" means the tasks without one. If it is nil, the
	// visitor has Role everywhere.
	In func(ctx context.Context, repo string) policy.Repo
}

type visitorKey struct{}

// WithVisitor returns a context that carries who makes a request.
func WithVisitor(ctx context.Context, v Visitor) context.Context {
	return context.WithValue(ctx, visitorKey{}, &v)
}

// VisitorOf returns the visitor of a context. Without one it returns an admin without a name.
func VisitorOf(ctx context.Context) Visitor {
	if v, ok := ctx.Value(visitorKey{}).(*Visitor); ok {
		return *v
	}
	return Visitor{Role: Admin}
}

// Console is the actor for requests with the console's token, which does not identify a user.
const Console = "console"

// Actor returns the name of the visitor, for Task.Actor, or [Console] if none exists.
func Actor(ctx context.Context) string {
	if name := VisitorOf(ctx).Name; name != "" {
		return name
	}
	return Console
}

// PublicName returns how posts and pages name the visitor, for Cancel and Answer: as the operator does, or by their
// login on the forge if it is known. The name that [Actor] returns may be a private address then.
func PublicName(ctx context.Context) string {
	v := VisitorOf(ctx)
	return cmp.Or(v.Person, v.Login, Actor(ctx))
}

// Has reports whether the visitor may do something in all repositories and outside of them.
func (v Visitor) Has(a policy.Action) bool {
	return v.In == nil && v.decide(a, policy.Object{Repos: []policy.Repo{{Role: v.Role}}}).Allowed
}

// May decides whether the visitor may do something in a repository; "" means what belongs to none or to all.
func (v Visitor) May(ctx context.Context, a policy.Action, repo string) policy.Verdict {
	return v.decide(a, policy.Object{Repos: v.repos(ctx, repo)})
}

// Operates returns a *[RoleError] if the visitor is no operator in a repository; "" means all of them.
func (v Visitor) Operates(ctx context.Context, repo string) error {
	if may := v.May(ctx, policy.Operate, repo); !may.Allowed {
		return &RoleError{may.Reason}
	}
	return nil
}

func (v Visitor) decide(a policy.Action, o policy.Object) policy.Verdict {
	return policy.Decide(policy.Subject{Role: v.Role, Bot: v.Agent}, a, o, policy.Posture{})
}

// repos collects what is known of the visitor's role in repositories.
func (v Visitor) repos(ctx context.Context, names ...string) (list []policy.Repo) {
	for _, name := range names {
		r := policy.Repo{Role: v.Role}
		if v.In != nil {
			r = v.In(ctx, name)
		}
		r.Name = name
		list = append(list, r)
	}
	return list
}

// Partial reports whether the visitor's role holds in some repositories only, and their account on the forge, which
// would say what they may do elsewhere, is not known.
func (v Visitor) Partial() bool { return v.In != nil && v.Login == "" }

// RoleError means that a visitor sees a task but may not do this with it.
type RoleError struct{ Sentence string }

func (e *RoleError) Error() string { return e.Sentence }

// Permits reports whether a desk lets the visitor of a context do something with a task.
func Permits(ctx context.Context, d *Desk, t Task, a policy.Action) bool {
	return d.policy.People.permit(ctx, t, a) == nil
}

// permit checks that the visitor may do something with a task. It returns ErrNotFound for a task that they do not see.
func (p People) permit(ctx context.Context, t Task, a policy.Action) error {
	v := VisitorOf(ctx)
	if v.Has(a) {
		return nil
	}
	may := v.decide(a, policy.Object{
		Repos: v.repos(ctx, t.Places()...), Own: p.asked(v, p.asker(t)), Linked: v.Task == t.ID,
	})
	switch {
	case may.Allowed:
		return nil
	case may.Hidden:
		return fmt.Errorf("%w: %s", ErrNotFound, t.ID)
	}
	return &RoleError{may.Reason}
}

// may is permit for a task that has not been read. It reads the task only for a visitor who is restricted.
func (d *Desk) may(ctx context.Context, id string, a policy.Action) error {
	if VisitorOf(ctx).Has(a) {
		return nil
	}
	rec, err := d.store.Get(ctx, id)
	if err != nil {
		return d.notFound(id, err)
	}
	return d.policy.People.permit(ctx, d.status(rec).Task, a)
}

// asked reports whether a visitor is the asker "source/account", or the person with that name.
func (p People) asked(v Visitor, asker string) bool {
	return asker == "chat/"+format.OneWord(v.Name) ||
		v.Login != "" && strings.EqualFold(asker, forgeSource+"/"+format.OneWord(v.Login)) ||
		v.Person != "" && strings.EqualFold(p.named(asker), v.Person)
}

// visible returns whether the visitor of a context sees what has the scopes. It returns nil if they see everything.
func (p People) visible(ctx context.Context) func(scopes []string) bool {
	v := VisitorOf(ctx)
	if v.Has(policy.See) {
		return nil
	}
	return func(scopes []string) bool {
		repos := reposOf(scopes)
		if len(repos) == 0 {
			repos = []string{""}
		}
		own := p.asked(v, scoped(scopes, userScope))
		return v.decide(policy.See, policy.Object{Repos: v.repos(ctx, repos...), Own: own}).Allowed
	}
}

// scoped returns the name of the scope of a kind, or "".
func scoped(scopes []string, kind string) string {
	for _, s := range scopes {
		if name, ok := strings.CutPrefix(s, kind); ok {
			return name
		}
	}
	return ""
}

// reposOf returns the repositories of a task with these scopes.
func reposOf(scopes []string) (repos []string) {
	for _, s := range scopes {
		if name, ok := strings.CutPrefix(s, repoScope); ok {
			repos = append(repos, name)
		}
	}
	return repos
}

// filterVisible drops the tasks that the visitor of a context may not see.
func (p People) filterVisible(ctx context.Context, records []store.Record) []store.Record {
	if sees := p.visible(ctx); sees != nil {
		records = slices.DeleteFunc(records, func(r store.Record) bool { return !sees(r.Scopes) })
	}
	return records
}

// permitNew checks that the visitor of a context may start a task.
func (d *Desk) permitNew(ctx context.Context, t Task) error {
	v := VisitorOf(ctx)
	if v.Has(policy.Start) {
		return nil
	}
	in := func(repos []string) []policy.Repo {
		var names []string
		for _, repo := range repos {
			names = append(names, d.policy.withoutHost(repo))
		}
		return v.repos(ctx, names...)
	}
	thread, err := d.Thread(ctx, t.Thread)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	past, err := d.store.Threads.LatestTasks(ctx, t.Thread, historyChecked)
	if err != nil {
		return err
	}
	about, err := conversation(ctx, d.store, t.Thread) // tasks are not kept as long
	if err != nil {
		return err
	}
	all, known := len(past), d.policy.People.filterVisible(ctx, past)
	repos := append(about.Repos, Task{Repo: thread.Repo, Also: thread.Also}.Repositories()...)
	may := v.decide(policy.Start, policy.Object{
		Repos: in(t.Places()), Directory: t.Dir != "",
		Past: in(repos), Forgotten: about.Repos == nil, Unseen: len(known) < all,
		Own: slices.ContainsFunc(known, func(r store.Record) bool {
			return d.policy.People.asked(v, scoped(r.Scopes, userScope))
		}),
	})
	if !may.Allowed {
		return &InputError{Sentence: may.Reason}
	}
	return nil
}

// historyChecked is how many tasks of a conversation a visitor must be allowed to see to continue it: as many as the
// store keeps.
const historyChecked = 200
