package attempt

import (
	"context"
	"log/slog"
	"sync"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/capacity"
)

// Credentials keeps the runner's credentials for the model and what the fleet knows of them the same. It is safe for
// concurrent use.
type Credentials struct {
	Known KnownCredentials
	Store *store.Store
	Own   string // identifies the credential of the runs if they have only one; "" if unknown
	Log   *slog.Logger

	mu sync.Mutex // one at a time
}

// KnownCredentials are those that runs can have, and what is known of them. *agent.Runner implements it.
type KnownCredentials interface {
	Credentials() map[string]agent.CredentialState
	Learn(known map[string]agent.CredentialState)
}

// several reports whether runs have one of several credentials.
func (c *Credentials) several() bool { return len(c.Known.Credentials()) > 1 }

// Share is called at each heartbeat, before a run and after its cost is settled. Without Redis the worker goes on with
// what it knows.
func (c *Credentials) Share(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	own := c.Known.Credentials()
	if c.Own == "" || own[""].Seen.IsZero() {
		delete(own, "") // the only credential, of which the model has said nothing
	}
	rename(own, "", c.Own)
	if len(own) == 0 {
		return
	}
	fleet, err := capacity.ShareCredentials(ctx, c.Store, own)
	if err != nil {
		if ctx.Err() == nil {
			c.Log.Warn("share the state of credentials", "err", err)
		}
		return
	}
	rename(fleet, c.Own, "")
	c.Known.Learn(fleet)
}

// rename gives a credential another name, if it is there.
func rename(all map[string]agent.CredentialState, from, to string) {
	if state, ok := all[from]; ok {
		delete(all, from)
		all[to] = state
	}
}
