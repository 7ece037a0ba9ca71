package policy

import (
	"fmt"
	"slices"
	"strings"
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

// Needs returns the rule for what needs a role in all repositories of an object. A signed link makes a viewer.
func Needs(need Role) Action {
	return func(s Subject, o Object, _ Posture) Verdict {
		has, where := s.roleIn(o.Repos, o.Own), ""
		if has >= need || o.Linked && need == Viewer {
			return allowed
		}
		if len(o.Repos) > 0 && o.Repos[0].Name == "" {
			where = " for all repositories"
		}
		v := no("This needs the role %s%s. Your role here is %s.", need, where, has)
		v.Hidden = has < Viewer && !o.Linked
		return v
	}
}

// roleIn returns the lowest role that somebody has in any of some repositories, or anywhere without these. For what is
// their own, outside of repositories, the role counts that they have anywhere.
func (s Subject) roleIn(repos []Repo, own bool) Role {
	role := s.Role
	for _, r := range repos {
		if r.Barred {
			role = Anyone
		} else if r.Name != "" || !own {
			role = min(role, r.Role)
		}
	}
	return role
}

// stop decides who may stop a task at the front door.
func stop(s Subject, o Object, p Posture) Verdict {
	v := Needs(Operator)(s, o, p)
	if v.Allowed || s.roleIn(o.Repos, o.Own) < User {
		return v
	}
	if o.Own {
		return allowed
	}
	return no("You may do this only with tasks that you asked for. An operator may do it with all.")
}

// take decides who may take a task over: who may stop it, and may see all that its conversation repeats.
func take(s Subject, o Object, p Posture) Verdict {
	v := stop(s, o, p)
	switch {
	case !v.Allowed:
		return v
	case o.Forgotten:
		return no("I no longer know which repositories this conversation has been about.")
	case s.roleIn(o.Past, o.Own) < Viewer:
		return no("This conversation has been about a repository that you may not see.")
	}
	return v
}

// approve decides who may approve at the front door what a task does. A rule that asks wants a person.
func approve(s Subject, o Object, p Posture) Verdict {
	if s.Bot {
		return no("A person has to decide about this tool call, where the task was asked for or at the console.")
	}
	return stop(s, o, p)
}

// start decides who may start a task at the front door. An agent that continues a conversation repeats what was said
// there, so they must also see what it has been about; what is outside of repositories, people see who took part in it.
func start(s Subject, o Object, _ Posture) Verdict {
	for i, r := range o.Repos {
		where := "outside of repositories"
		if r.Name != "" {
			where = "in " + r.Name
		}
		if s.roleIn(o.Repos[i:i+1], !o.Directory) < User {
			return no("You may not start tasks %s.", where)
		}
	}
	switch {
	case s.Role < User:
		return no("You may not start tasks.")
	case o.Forgotten:
		return no(Forgotten)
	case o.Unseen, s.roleIn(o.Past, o.Own) < Viewer:
		return no("You may not continue this conversation. Start a new one.")
	}
	return allowed
}
