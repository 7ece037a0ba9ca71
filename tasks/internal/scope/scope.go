// Package scope knows the scopes in which a task counts for limits, budgets and filters: its repositories, the person
// who asked for it and the channel. A scope is a kind, such as [User], and a name.
package scope

import (
	"slices"
	"strings"

	"github.com/errand-fleet/errand/tasks/internal/format"
)

// The prefixes of scopes.
const (
	Repository = "repo:"
	User       = "user:"
	Channel    = "channel:"
)

// Name returns the name of the scope of a kind, or "".
func Name(scopes []string, kind string) string {
	for _, s := range scopes {
		if name, ok := strings.CutPrefix(s, kind); ok {
			return name
		}
	}
	return ""
}

// Repositories returns the repositories of a task with these scopes.
func Repositories(scopes []string) (repos []string) {
	for _, s := range scopes {
		if name, ok := strings.CutPrefix(s, Repository); ok {
			repos = append(repos, name)
		}
	}
	return repos
}

// Within reports whether scopes contain the repository, one of the persons and the channel. The persons are from
// people.People.Filter. An empty argument matches anything.
func Within(scopes []string, repo string, persons []string, channel string) bool {
	asked := func(person string) bool {
		name, exact := strings.CutPrefix(person, User)
		return has(scopes, User, format.OneWord(name), exact)
	}
	return (repo == "" || has(scopes, Repository, repo, true)) &&
		(len(persons) == 0 || slices.ContainsFunc(persons, asked)) &&
		(channel == "" || has(scopes, Channel, format.OneWord(channel), false))
}

// has reports whether one of the scopes has that kind and name. Unless exact, a name without a source matches that
// name in every source.
func has(scopes []string, kind, name string, exact bool) bool {
	for _, s := range scopes {
		of, ok := strings.CutPrefix(s, kind)
		_, bare, _ := strings.Cut(of, "/")
		if ok && (strings.EqualFold(of, name) || !exact && strings.EqualFold(bare, name)) {
			return true
		}
	}
	return false
}
