package worker

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
)

// credentialSharer keeps the runner's credentials for the model and what the fleet knows of them the same, and leaves
// out those that have reached their cap. It is safe for concurrent use.
type credentialSharer struct {
	*Config
	worker string // its ID

	mu sync.Mutex // one at a time
}

// share is called at each heartbeat, before a run and after its cost is settled. Without Redis the worker goes on with
// what it knows.
func (c *credentialSharer) share(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	own := c.Runner.Credentials()
	if c.Credential == "" || own[""].Seen.IsZero() {
		delete(own, "") // the only credential, of which the model has said nothing
	}
	rename(own, "", c.Credential)
	if len(own) == 0 {
		return
	}
	fleet, err := tasks.ShareCredentials(ctx, c.Store, own)
	if err == nil {
		err = c.addCaps(ctx, own, fleet)
	}
	if err != nil {
		if ctx.Err() == nil {
			c.Log.Warn("share the state of credentials", "err", err)
		}
		return
	}
	rename(fleet, c.Credential, "")
	c.Runner.Learn(fleet)
}

// addCaps notes in fleet which of the worker's credentials have reached their cap.
func (c *credentialSharer) addCaps(ctx context.Context, own, fleet map[string]agent.CredentialState) error {
	capped := maps.Clone(own)
	maps.DeleteFunc(capped, func(_ string, s agent.CredentialState) bool { return s.Cap <= 0 })
	if len(capped) == 0 {
		return nil
	}
	used, err := tasks.UseCredentials(ctx, c.Store, c.worker, capped)
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
