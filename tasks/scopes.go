package tasks

import (
	"strings"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/internal/format"
)

// The prefixes of scopes.
const (
	repoScope       = "repo:"
	userScope       = "user:"
	channelScope    = "channel:"
	credentialScope = "credential:"
)

// Limits is how many tasks may run at once in the whole fleet. 0 means no limit.
type Limits struct {
	Repository int // for each repository
	User       int // for each person
	Credential int // for each model credential
}

// Caps returns the limits in the form that a claim takes. credential is the claiming worker's; empty if unknown.
func (l Limits) Caps(credential string) []store.Cap {
	caps := []store.Cap{{Scope: repoScope, Max: l.Repository}, {Scope: userScope, Max: l.User}}
	if credential != "" {
		caps = append(caps, store.Cap{Scope: credentialScope + credential, Max: l.Credential})
	}
	return caps
}

// scopes returns the scopes in which a task counts for limits and budgets.
func (t Task) scopes() []string {
	var list []string
	add := func(kind, name string) {
		if name = format.OneWord(name); name != "" {
			list = append(list, kind+name)
		}
	}
	add(repoScope, strings.ToLower(t.Repo)) // GitHub ignores case
	if t.Actor != "" {
		add(userScope, t.Source+"/"+t.Actor)
	}
	if t.Channel != "" {
		add(channelScope, t.Source+"/"+t.Channel)
	}
	return list
}
