package auth

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/errand-fleet/errand/internal/cache"
	"github.com/errand-fleet/errand/internal/pattern"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
)

// Identity is a person as a login or a proxy states it.
type Identity struct {
	Name   string   `json:"name"`
	Email  string   `json:"email,omitempty"` // verified
	Groups []string `json:"groups,omitempty"`
	// Login is their account at the forge; empty if unknown. Unless ID is set, it is what a claim says: it limits what
	// the person sees to what that account may read, and gives them nothing.
	Login string `json:"login,omitempty"`
	ID    int64  `json:"id,omitempty"` // of that account, after a login there
}

// proven returns the account of a person who has logged in with it, or "".
func (id Identity) proven() string {
	if id.ID == 0 {
		return ""
	}
	return id.Login
}

// Grant gives a role to people and groups. People match their name, their verified e-mail address or the account that
// they have logged in with, and repositories their name, as in path.Match; case does not matter.
type Grant struct {
	Role         policy.Role
	People       []string
	Groups       []string
	Repositories []string // empty: all, and tasks without one
}

// Access collects what is known of a person's roles.
type Access struct {
	Grants []Grant
	People people.People
	// Forge reports whether an account of the forge may read a repository. nil: the forge is not asked.
	Forge func(ctx context.Context, repo, login string) (bool, error)

	once    sync.Once
	answers *cache.Cache[bool]
}

// visitor returns a person with their roles.
func (a *Access) visitor(id Identity, method string, log *slog.Logger) people.Visitor {
	v := people.Visitor{Name: id.Name, Method: method}
	account := id.proven()
	for _, one := range a.People {
		if id.Email != "" && strings.EqualFold(one.Email, id.Email) ||
			account != "" && strings.EqualFold(one.GitHub, account) {
			v.Person, account = one.Name, cmp.Or(account, one.GitHub)
		}
	}
	id.Login = cmp.Or(account, id.Login)
	v.Login = id.Login
	var grants []Grant
	for _, g := range a.Grants {
		if g.holds(id) {
			grants, v.Role = append(grants, g), max(v.Role, g.Role)
		}
	}
	if asked := id.Login != "" && a.Forge != nil; asked || highest("", grants...) < v.Role {
		v.In = func(ctx context.Context, repo string) policy.Repo {
			r := policy.Repo{Role: highest(repo, grants...)}
			r.Barred = asked && repo != "" && r.Role > policy.Anyone && !a.reads(ctx, repo, id.Login, log)
			return r
		}
	}
	return v
}

// holds reports whether a grant is for a person.
func (g Grant) holds(id Identity) bool {
	person := func(p string) bool {
		return matches(p, id.Email) || matches(p, id.Name) || matches(p, id.proven())
	}
	return slices.ContainsFunc(g.People, person) || slices.ContainsFunc(g.Groups, func(group string) bool {
		return slices.Contains(id.Groups, group)
	})
}

// covers reports whether a grant is for a repository; "" means what belongs to none.
func (g Grant) covers(repo string) bool {
	return len(g.Repositories) == 0 || slices.ContainsFunc(g.Repositories, func(p string) bool {
		return matches(p, repo)
	})
}

// highest returns the highest role that grants give in a repository.
func highest(repo string, grants ...Grant) (role policy.Role) {
	for _, g := range grants {
		if g.covers(repo) {
			role = max(role, g.Role)
		}
	}
	return role
}

// matches reports whether a name that is not empty matches a pattern.
func matches(p, name string) bool {
	return name != "" && pattern.Match(p, name)
}

// How long the forge may take to answer, and how long an error counts.
const askTime, errorTime = 2 * time.Second, 5 * time.Second

// reads reports whether the forge lets an account read a repository. If the forge does not answer, it does not: a list
// asks about each of its tasks, and would wait for each.
func (a *Access) reads(ctx context.Context, repo, login string, log *slog.Logger) bool {
	a.once.Do(func() {
		a.answers = &cache.Cache[bool]{
			Limit: askTime, Life: 5 * time.Minute, ErrorLife: errorTime, Quiet: true, Now: time.Now,
		}
	})
	ok, err := a.answers.Get(ctx, strings.ToLower(repo+" "+login), func(ctx context.Context) (bool, error) {
		ok, err := a.Forge(ctx, repo, login)
		if err != nil {
			log.Warn("ask the forge for a permission", "repository", repo, "err", err)
		}
		return ok, err
	})
	return ok && err == nil
}
