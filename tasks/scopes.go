package tasks

import (
	"strings"

	"github.com/errand-fleet/errand/store"
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

// scopes is what a task counts in, for limits and budgets.
func (t Task) scopes() []string {
	var list []string
	add := func(kind, name string) {
		if name = oneWord(name); name != "" {
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

// oneWord makes one line of a name, whatever a source calls people.
func oneWord(name string) string { return strings.Join(strings.Fields(name), "-") }

// caps are the limits as a claim takes them.
func (c WorkerConfig) caps() []store.Cap {
	l := c.Policy.Limits
	caps := []store.Cap{{Scope: repoScope, Max: l.Repository}, {Scope: userScope, Max: l.User}}
	if c.Credential != "" {
		caps = append(caps, store.Cap{Scope: credentialScope + c.Credential, Max: l.Credential})
	}
	return caps
}
