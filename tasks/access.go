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

// Role is what a visitor of the front door may do. Each role includes the ones before it.
type Role int

// The roles.
const (
	Anyone   Role = iota // has not logged in
	Guest                // sees the one task that a signed link names
	Viewer               // sees tasks, costs and health
	User                 // starts tasks, answers questions, and stops their own tasks
	Operator             // stops and retries all tasks, and changes queues
	Admin                // manages tokens and reads the audit log
)

var roleNames = []string{"anyone", "guest", "viewer", "user", "operator", "admin"}

func (r Role) String() string { return roleNames[r] }

// MarshalText writes the name of the role.
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads the name of a role that can be granted.
func (r *Role) UnmarshalText(text []byte) error {
	i := slices.Index(roleNames, string(text))
	if i < int(Viewer) {
		return fmt.Errorf("a role is one of %s, not %q", strings.Join(roleNames[Viewer:], ", "), text)
	}
	*r = Role(i)
	return nil
}

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

	// In returns the role in a repository; "" means the tasks without one. If it is nil, the visitor has Role
	// everywhere.
	In func(ctx context.Context, repo string) Role
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

// Has reports whether the visitor has a role in all repositories and outside of them.
func (v Visitor) Has(role Role) bool { return v.Role >= role && v.In == nil }

// Partial reports whether the visitor's role holds in some repositories only, and their account on the forge, which
// would say what they may do elsewhere, is not known.
func (v Visitor) Partial() bool { return v.In != nil && v.Login == "" }

// RoleIn returns the visitor's role in a repository; "" means the tasks without one.
func (v Visitor) RoleIn(ctx context.Context, repo string) Role {
	if v.In == nil {
		return v.Role
	}
	return min(v.Role, v.In(ctx, repo))
}

// RoleError means that a visitor sees a task but may not do this with it.
type RoleError struct{ Sentence string }

func (e *RoleError) Error() string { return e.Sentence }

// Permits reports whether a desk lets the visitor of a context do with a task what a role may do or, with own, what a
// user may do with their own tasks.
func Permits(ctx context.Context, d *Desk, t Task, need Role, own bool) bool {
	return d.policy.People.permit(ctx, t, need, own) == nil
}

// permit checks that the visitor may see a task, and has the role that an action needs or, as a user, asked for the
// task. It returns ErrNotFound for a task that they may not see.
func (p People) permit(ctx context.Context, t Task, need Role, own bool) error {
	v := VisitorOf(ctx)
	if v.Has(need) && v.Task == "" {
		return nil
	}
	asker := p.asker(t)
	if v.Task != "" && v.Task != t.ID || v.Task == "" && !p.sees(ctx, v, t.Repositories(), asker) {
		return fmt.Errorf("%w: %s", ErrNotFound, t.ID)
	}
	has := v.RoleInAll(ctx, t.Repositories())
	if p.asked(v, asker) && t.Repo == "" {
		has = v.Role
	}
	switch {
	case has >= need, own && has >= User && p.asked(v, asker):
		return nil
	case own && has >= User:
		return &RoleError{"You may do this only with tasks that you asked for. An operator may do it with all."}
	}
	return &RoleError{fmt.Sprintf("This needs the role %s. Your role here is %s.", need, has)}
}

// may is permit for a task that has not been read. It reads the task only for a visitor who is restricted.
func (d *Desk) may(ctx context.Context, id string, need Role, own bool) error {
	if v := VisitorOf(ctx); v.Has(need) && v.Task == "" {
		return nil
	}
	rec, err := d.store.Get(ctx, id)
	if err != nil {
		return d.notFound(id, err)
	}
	return d.policy.People.permit(ctx, d.status(rec).Task, need, own)
}

// sees reports whether a visitor sees the tasks of repositories or, outside of repositories, those of an asker.
func (p People) sees(ctx context.Context, v Visitor, repos []string, asker string) bool {
	return v.RoleInAll(ctx, repos) >= Viewer || len(repos) == 0 && v.Role >= Viewer && p.asked(v, asker)
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
	switch {
	case v.Task != "":
		return func([]string) bool { return false }
	case v.Has(Viewer):
		return nil
	}
	return func(scopes []string) bool {
		return p.sees(ctx, v, reposOf(scopes), scoped(scopes, userScope))
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

// permitNew checks that the visitor of a context may start a task. An agent that continues a conversation repeats what
// was said there, so the visitor must also see what the thread was about.
func (d *Desk) permitNew(ctx context.Context, t Task) error {
	v := VisitorOf(ctx)
	if v.Has(User) {
		return nil
	}
	for _, repo := range t.Places() {
		repo, where := d.policy.withoutHost(repo), "outside of repositories"
		if repo != "" {
			where = "in " + repo
		}
		if v.RoleIn(ctx, repo) < User && (repo != "" || t.Dir != "" || v.Role < User) {
			return &InputError{Sentence: fmt.Sprintf("You may not start tasks %s.", where)}
		}
	}
	thread, err := d.Thread(ctx, t.Thread)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	var earlier []string
	for _, repo := range (Task{Repo: thread.Repo, Also: thread.Also}).Repositories() {
		earlier = append(earlier, d.policy.withoutHost(repo))
	}
	past, err := d.store.Threads.LatestTasks(ctx, t.Thread, historyChecked)
	if err != nil {
		return err
	}
	about, err := conversation(ctx, d.store, t.Thread) // tasks are not kept as long
	if err != nil {
		return err
	}
	if about.Repos == nil {
		return &InputError{Sentence: policy.Forgotten}
	}
	all, known := len(past), d.policy.People.filterVisible(ctx, past)
	takesPart := slices.ContainsFunc(known, func(r store.Record) bool {
		return d.policy.People.asked(v, scoped(r.Scopes, userScope))
	})
	hidden := func(repo string) bool { // people who took part in it were allowed to
		return v.RoleIn(ctx, d.policy.withoutHost(repo)) < Viewer && (repo != "" || !takesPart)
	}
	if len(earlier) > 0 && v.RoleInAll(ctx, earlier) < Viewer || len(known) < all ||
		slices.ContainsFunc(about.Repos, hidden) {
		return &InputError{Sentence: "You may not continue this conversation. Start a new one."}
	}
	return nil
}

// historyChecked is how many tasks of a conversation a visitor must be allowed to see to continue it: as many as the
// store keeps.
const historyChecked = 200
