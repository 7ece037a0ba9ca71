package tasks

import (
	"strings"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/internal/format"
)

// The kinds of scopes, as they begin.
const (
	repoScope       = "repo:"
	userScope       = "user:"
	channelScope    = "channel:"
	credentialScope = "credential:"
)

// Limits is how many tasks run at once, in all of the fleet. 0: no limit.
type Limits struct {
	Repository int // of each repository
	User       int // of each person who asks
	Credential int // with each credential for the model
}

// Caps are the limits as a claim takes them. credential is that of the claiming worker; empty: it is not known.
func (l Limits) Caps(credential string) []store.Cap {
	caps := []store.Cap{{Scope: repoScope, Max: l.Repository}, {Scope: userScope, Max: l.User}}
	if credential != "" {
		caps = append(caps, store.Cap{Scope: credentialScope + credential, Max: l.Credential})
	}
	return caps
}

// scopes is what a task counts in, for limits and budgets.
func (t Task) scopes() []string {
	var list []string
	add := func(kind, name string) {
		if name = format.OneWord(name); name != "" {
			list = append(list, kind+name)
		}
	}
	add(repoScope, strings.ToLower(t.Repo)) // GitHub does not mind upper and lower case
	if t.Actor != "" {
		add(userScope, t.Source+"/"+t.Actor)
	}
	if t.Channel != "" {
		add(channelScope, t.Source+"/"+t.Channel)
	}
	return list
}
