package tasks

import (
	"context"
	"strings"
)

// Person is one human with accounts in several sources, under a name that the operator chose. An account may be
// empty.
type Person struct {
	Name   string
	Slack  string // user ID
	GitHub string // login
}

// Account returns a person's account in a source, or "".
func (p Person) Account(source string) string {
	switch source {
	case "slack":
		return p.Slack
	case "github":
		return p.GitHub
	}
	return ""
}

// People maps accounts to people. It only affects how they are named, never what they may do.
type People []Person

// Find returns the person with an account in a source, and whether the person is known. Like GitHub, it ignores case.
func (p People) Find(source, account string) (Person, bool) {
	for _, one := range p {
		if own := one.Account(source); own != "" && strings.EqualFold(own, account) {
			return one, true
		}
	}
	return Person{}, false
}

// Name returns the name of an account's person, or the account if it has none.
func (p People) Name(source, account string) string {
	if one, ok := p.Find(source, account); ok {
		return one.Name
	}
	return account
}

// Asker returns who asked for the task: their account, preceded by their name if it is configured.
func (s Status) Asker() string {
	if s.Person == "" {
		return s.Task.Actor
	}
	return s.Person + " (" + s.Task.Actor + ")"
}

// named returns the name of the person with the account "source/account", or the argument.
func (p People) named(who string) string {
	source, account, _ := strings.Cut(who, "/")
	if one, ok := p.Find(source, account); ok {
		return one.Name
	}
	return who
}

// filter returns the scopes' names for a person to filter by: the name itself and, if it is a configured name, the
// person's accounts. It returns nil for an empty name, which matches everyone.
func (p People) filter(who string) []string {
	if who == "" {
		return nil
	}
	list := []string{who}
	for _, one := range p {
		if !strings.EqualFold(one.Name, who) {
			continue
		}
		for _, source := range []string{"slack", "github"} {
			if account := one.Account(source); account != "" {
				list = append(list, source+"/"+account)
			}
		}
	}
	return list
}

// Console is the actor for requests with the console's token, which does not identify a user.
const Console = "console"

type actorKey struct{}

// WithActor returns a context that carries the name of the user who makes a request.
func WithActor(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, actorKey{}, name)
}

// Actor returns the name that WithActor set, for Task.Actor, Cancel and Answer, or [Console] if there is none.
func Actor(ctx context.Context) string {
	if name, ok := ctx.Value(actorKey{}).(string); ok {
		return name
	}
	return Console
}
