package attempt

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/capacity"
)

// Credentials keeps the runner's credentials for the model and what the fleet knows of them the same, and leaves out
// those that have reached their cap. It is safe for concurrent use.
type Credentials struct {
	Known  KnownCredentials
	Store  *store.Store
	Own    string // identifies the credential of the runs if they have only one; "" if unknown
	Worker string // ID of the worker
	Log    *slog.Logger

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
	fleet, err := c.exchange(ctx, own)
	if err != nil {
		if ctx.Err() == nil {
			c.Log.Warn("share the state of credentials", "err", err)
		}
		return
	}
	rename(fleet, c.Own, "")
	c.Known.Learn(fleet)
}

// exchange tells the fleet what this worker knows of credentials, and returns what the fleet knows of them.
func (c *Credentials) exchange(
	ctx context.Context, own map[string]agent.CredentialState,
) (map[string]agent.CredentialState, error) {
	fleet, err := capacity.ShareCredentials(ctx, c.Store, own)
	if err != nil {
		return nil, err
	}
	return fleet, c.addCaps(ctx, own, fleet)
}

// addCaps notes in fleet which of the worker's credentials have reached their cap.
func (c *Credentials) addCaps(ctx context.Context, own, fleet map[string]agent.CredentialState) error {
	capped := maps.Clone(own)
	maps.DeleteFunc(capped, func(_ string, s agent.CredentialState) bool { return s.Cap <= 0 })
	if len(capped) == 0 {
		return nil
	}
	used, err := capacity.UseCredentials(ctx, c.Store, c.Worker, capped)
	for _, u := range used {
		state := fleet[u.Name]
		state.CappedUntil = u.CappedAt(time.Now())
		if !state.CappedUntil.IsZero() && u.CappedUntil.IsZero() {
			c.Log.Warn("a credential for the model has reached its cap", "credential", u.Name, "spent", u.Spent+u.Live,
				"cap", u.Cap, "until", state.CappedUntil)
		}
		fleet[u.Name] = state
	}
	return err
}

// rename gives a credential another name, if it is there.
func rename(all map[string]agent.CredentialState, from, to string) {
	if state, ok := all[from]; ok {
		delete(all, from)
		all[to] = state
	}
}
