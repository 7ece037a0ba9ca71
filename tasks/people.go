package tasks

import (
	"context"
	"strings"
)

// Person is one human in several sources, by a name that the operator chose. Accounts may be empty.
type Person struct {
	Name   string
	Slack  string // user id
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

// People is who is who in the sources. It says how people are called, and nothing of what they may do.
type People []Person

// Find looks an account up, as its source calls it; false when nobody is known to have it. Like GitHub it does not mind upper and lower case.
func (p People) Find(source, account string) (Person, bool) {
	for _, one := range p {
		if own := one.Account(source); own != "" && strings.EqualFold(own, account) {
			return one, true
		}
	}
	return Person{}, false
}

// Name is what an account's person is called, or the account itself.
func (p People) Name(source, account string) string {
	if one, ok := p.Find(source, account); ok {
		return one.Name
	}
	return account
}

// Asker is who asked for a task, by name where that is known, with the account they did it by.
func (s Status) Asker() string {
	if s.Person == "" {
		return s.Task.Actor
	}
	return s.Person + " (" + s.Task.Actor + ")"
}

// named is the name of the person behind a source and an account with a slash between them, or that itself.
func (p People) named(who string) string {
	source, account, _ := strings.Cut(who, "/")
	if one, ok := p.Find(source, account); ok {
		return one.Name
	}
	return who
}

// filter is what a person to filter by may be called in scopes: as it stands, and where it is somebody's name by the person's accounts. None:
// anybody.
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

// Console is who asks at a front door that knows no more than that they have the console's token: there are no users behind it.
const Console = "console"

type actorKey struct{}

// WithActor notes in a request's context who asks, as the front door knows them.
func WithActor(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, actorKey{}, name)
}

// Actor is who asks with a request, for Task.Actor, Cancel and Answer: [Console] if nobody noted a name.
func Actor(ctx context.Context) string {
	if name, ok := ctx.Value(actorKey{}).(string); ok {
		return name
	}
	return Console
}
