// Package people knows who asks: accounts in the sources, the people whom an operator has named, and the visitors of
// the front door with what they may do. It asks no service and reads no store.
package people

import (
	"cmp"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/format"
	"github.com/errand-fleet/errand/tasks/internal/scope"
)

// Person is one human with accounts in several sources, under a name that the operator chose. An account may be
// empty.
type Person struct {
	Name   string
	Slack  string // user ID
	GitHub string // login
	Email  string // at the login to the console
}

// Account returns a person's account in a source, or "".
func (p Person) Account(source string) string {
	switch source {
	case "slack":
		return p.Slack
	case "github":
		return p.GitHub
	case "chat":
		return p.Email
	}
	return ""
}

// People maps accounts to people. It affects how they are named, which account of the forge and which tasks are theirs,
// and what counts towards the same budget and limit.
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

// Author returns the person who asked for a task, and whether the person is known.
func (p People) Author(t tasks.Task) (Person, bool) {
	return p.Of(tasks.Asker{Source: t.Source, Account: t.Actor, Login: t.Login})
}

// Of returns a person by their login on the forge, if the front door knows it, or else by their account.
func (p People) Of(by tasks.Asker) (Person, bool) {
	if one, ok := p.Find("github", by.Login); ok {
		return one, true
	}
	return p.Find(by.Source, by.Account)
}

// Account returns who asked for a task, as in its scopes: the name of a person or an account, on the forge if that is
// known. So all accounts of a person count as one.
func (p People) Account(t tasks.Task) string {
	who := t.Source + "/" + t.Actor
	if one, known := p.Author(t); known {
		who = one.Name
	} else if t.Login != "" {
		who = ForgeSource + "/" + t.Login
	}
	return format.OneWord(who)
}

// Asker returns the configured name of the person who asked for a task or retried it; empty if they have none.
func (p People) Asker(t tasks.Task) string {
	one, _ := p.Of(t.AskedBy())
	return one.Name
}

// NameOf returns the name of the person who asked for a task: the configured one, the source's or the account. It is
// published, so the account is that on the forge if the front door knows it; the one there may be a private address.
func (p People) NameOf(t tasks.Task) string {
	if one, ok := p.Author(t); ok {
		return one.Name
	}
	return cmp.Or(t.Name, t.Login, t.Actor)
}

// Named returns the name of the person with the account "source/account", or the argument.
func (p People) Named(who string) string {
	source, account, _ := strings.Cut(who, "/")
	if one, ok := p.Find(source, account); ok {
		return one.Name
	}
	for _, one := range p {
		if format.OneWord(one.Name) == who { // as in scopes
			return one.Name
		}
	}
	return who
}

// Filter returns what to filter by for a person: the name itself and, if it is a configured name or one of the person's
// accounts, the scopes of the person and of their accounts. It returns nil for an empty name, which matches everyone.
func (p People) Filter(who string) []string {
	if who == "" {
		return nil
	}
	list := []string{who}
	for _, one := range p {
		names := []string{one.Name}
		for _, source := range []string{"slack", "github", "chat"} {
			if account := one.Account(source); account != "" {
				names = append(names, source+"/"+account) // in tasks from before they had a name
			}
		}
		if slices.ContainsFunc(names, func(name string) bool {
			_, bare, _ := strings.Cut(name, "/")
			return strings.EqualFold(name, who) || strings.EqualFold(bare, who)
		}) {
			for _, name := range names {
				list = append(list, scope.User+name)
			}
		}
	}
	return list
}

// Scopes returns the scopes in which a task counts for limits and budgets. All accounts of a person are one scope.
func (p People) Scopes(t tasks.Task) []string {
	var list []string
	add := func(kind, name string) {
		if name = format.OneWord(name); name != "" {
			list = append(list, kind+name)
		}
	}
	for _, repo := range t.Repositories() { // the main one first, to which costs are attributed
		add(scope.Repository, strings.ToLower(repo)) // GitHub ignores case
	}
	if t.Actor != "" {
		add(scope.User, p.Account(t))
	}
	if t.Channel != "" {
		add(scope.Channel, t.Source+"/"+t.Channel)
	}
	return list
}

// The sources whose accounts Rights knows by name.
const (
	SlackSource = "slack"
	ForgeSource = "github"
	ChatSource  = "chat"
)
