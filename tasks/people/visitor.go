package people

import (
	"cmp"
	"context"
	"time"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/policy"
)

// Visitor is who makes a request at the front door. The desk shows a visitor only what they may see, and does for them
// only what they may do. A context without a visitor belongs to errand itself and is not restricted.
type Visitor struct {
	Name   string      // recorded with what they do
	Method string      // how they authenticated, such as "token" or "proxy"
	Person string      // their name in [People]; empty if unknown
	Login  string      // on the forge; empty if unknown
	Role   policy.Role // the highest that they have anywhere

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
	if v, ok := VisitorIn(ctx); ok {
		return v
	}
	return Visitor{Role: policy.Admin}
}

// VisitorIn returns the visitor of a context, and whether it has one.
func VisitorIn(ctx context.Context) (Visitor, bool) {
	if v, ok := ctx.Value(visitorKey{}).(*Visitor); ok {
		return *v, true
	}
	return Visitor{}, false
}

// Console is the actor for requests with the console's token, which does not identify a user.
const Console = tasks.Console

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
	return v.In == nil && v.Decide(a, policy.Object{Repos: []policy.Repo{{Role: v.Role}}}).Allowed
}

// May decides whether the visitor may do something in a repository; "" means what belongs to none or to all.
func (v Visitor) May(ctx context.Context, a policy.Action, repo string) policy.Verdict {
	return v.Decide(a, policy.Object{Repos: v.Repos(ctx, repo)})
}

// Operates returns a *[RoleError] if the visitor is no operator in a repository; "" means all of them.
func (v Visitor) Operates(ctx context.Context, repo string) error {
	if may := v.May(ctx, policy.Operate, repo); !may.Allowed {
		return &RoleError{may.Reason}
	}
	return nil
}

func (v Visitor) Decide(a policy.Action, o policy.Object) policy.Verdict {
	return policy.Decide(policy.Subject{Role: v.Role, Bot: v.Agent}, a, o, policy.Posture{})
}

// Repos collects what is known of the visitor's role in repositories.
func (v Visitor) Repos(ctx context.Context, names ...string) (list []policy.Repo) {
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
