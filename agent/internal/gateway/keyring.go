package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/errand-fleet/errand/agent/cloud"
)

// Named is one of several credentials for the model.
type Named struct {
	Credential
	Token   func(context.Context) (string, error) // instead of Credential: returns a token; nil: none
	Cloud   cloud.Provider                        // instead of Credential; nil: Anthropic's API or such a gateway
	Name    string
	Weight  float64           // its share of the runs; 0: 1
	Cap     float64           // most US dollars a day; 0: any amount
	Names   map[string]string // what the provider calls the models of families
	Prices  PriceList         // come before the list prices
	Headers http.Header       // of requests with it; nil: Config.Headers
}

// kind is equal for credentials that can replace each other in a run: the CLI's behaviour and models depend only on it.
func (n Named) kind() string {
	if n.Cloud != nil {
		return fmt.Sprint(n.Cloud.Kind(), n.Names)
	}
	return fmt.Sprint(n.With("any"), n.Names)
}

// keyring has the credentials of all gateways. It is safe for concurrent use.
type keyring struct {
	log *slog.Logger

	mu   sync.Mutex
	keys []*key // the preferred ones first
}

// key is a credential of a keyring, whose mu guards state and runs.
type key struct {
	Named
	kind      string            // see Named.kind
	transport http.RoundTripper // the way to the model with it

	state KeyState
	runs  int // that use it now
}

// several reports whether there is a choice.
func (r *keyring) several() bool { return len(r.keys) > 1 }

// take gives a run one of the named credentials; nil: of all, whatever they have spent. The caller returns the lease.
func (r *keyring) take(names []string) (*lease, error) {
	l := &lease{ring: r, live: map[*key]float64{}}
	for _, k := range r.keys {
		if names == nil || slices.Contains(names, k.Name) {
			l.allowed = append(l.allowed, k)
		}
	}
	if len(l.allowed) == 0 {
		return nil, errors.New("the run may use none of the credentials for the model")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	uncapped := slices.DeleteFunc(slices.Clone(l.allowed), func(k *key) bool { return names != nil && k.capped(now) })
	if len(uncapped) == 0 {
		return nil, ErrCapped
	}
	k := best(uncapped, func(k *key) bool { return k.usable(now) && startable(uncapped, k.kind, now) })
	if k == nil { // the answer of the model decides about one that is held
		k = soonest(uncapped)
	}
	l.kind = k.kind
	l.move(k)
	return l, nil
}

// hold leaves a credential out until a time.
func (r *keyring) hold(k *key, until time.Time, status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !k.held(time.Now()) {
		r.log.Warn("a credential for the model is held", "credential", k.Name, "status", status, "until", until)
	}
	k.state.Until, k.state.Status, k.state.HeldAt = until, status, nowAfter(k.state.HeldAt)
}

// release lets a held credential be used again.
func (r *keyring) release(k *key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k.held(time.Now()) {
		r.log.Info("a credential for the model is no longer held", "credential", k.Name)
		k.state.Until, k.state.Status, k.state.HeldAt = time.Time{}, 0, nowAfter(k.state.HeldAt)
	}
}

// lease gives a run access to a keyring. It keeps one credential, and so the prompt cache, as long as that is usable.
// It is safe for concurrent use.
type lease struct {
	ring    *keyring
	allowed []*key
	kind    string // that the CLI was started with, for which it behaves differently

	// Guarded by ring.mu:
	current *key             // nil: the lease was returned
	live    map[*key]float64 // the lease's part of KeyState.Live
}

// next returns the credential for a request that was already sent with those in tried, or nil if none is left. held
// means that the credential is held, and used for lack of another or as a retry.
func (l *lease) next(tried []*key) (k *key, held bool) {
	l.ring.mu.Lock()
	defer l.ring.mu.Unlock()
	now := time.Now()
	usable := func(k *key) bool {
		return k.usable(now) && !slices.Contains(tried, k) && k.kind == l.kind
	}
	switch {
	case l.current == nil: // the run is over, and its requests end
		return nil, false
	case usable(l.current):
		return l.current, l.current.held(now)
	}
	if other := best(l.allowed, usable); other != nil {
		l.move(other)
		return other, other.held(now)
	}
	if len(tried) > 0 {
		return nil, false
	}
	return l.current, true
}

// move changes the current credential. The caller holds the keyring's mu.
func (l *lease) move(to *key) {
	if l.current != nil {
		l.current.runs--
	}
	if l.current = to; to != nil {
		to.runs++
	}
}

// cloud returns the cloud in use or, after the end of the lease, that of a credential; nil: none.
func (l *lease) cloud(otherwise *key) cloud.Provider {
	l.ring.mu.Lock()
	defer l.ring.mu.Unlock()
	return cmp.Or(l.current, otherwise).Cloud
}

// freeAt returns when a run with the same permissions finds a credential that may serve it; zero: that is unknown. The
// denied ones are not held, although they lack what the run asks for. otherKinds says that one of the run's kind has
// become held. Otherwise the next run would start with the same kind again.
func (l *lease) freeAt(denied []*key, otherKinds bool) time.Time {
	l.ring.mu.Lock()
	defer l.ring.mu.Unlock()
	now := time.Now()
	able := slices.DeleteFunc(slices.Clone(l.allowed), func(k *key) bool {
		return slices.Contains(denied, k) || k.rejected(now) || !otherKinds && k.kind != l.kind
	})
	if len(able) == 0 {
		return time.Time{}
	}
	if at := soonest(able).freeAt(); at.After(now) {
		return at
	}
	return now
}

// end returns the lease. It may be called again.
func (l *lease) end() {
	l.ring.mu.Lock()
	defer l.ring.mu.Unlock()
	l.move(nil)
	for k, usd := range l.live {
		k.state.Live -= usd
	}
	clear(l.live)
}
