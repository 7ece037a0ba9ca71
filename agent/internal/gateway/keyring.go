package gateway

import (
	"context"
	"errors"
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
	Names   map[string]string // what the provider calls the models of families
	Prices  PriceList         // come before the list prices
	Headers http.Header       // of requests with it; nil: Config.Headers
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
	transport http.RoundTripper // the way to the model with it

	state KeyState
	runs  int // that use it now
}

// several reports whether there is a choice.
func (r *keyring) several() bool { return len(r.keys) > 1 }

// take gives a run one of the named credentials; nil: of all. The caller returns the lease.
func (r *keyring) take(names []string) (*lease, error) {
	l := &lease{ring: r}
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
	free := slices.DeleteFunc(slices.Clone(l.allowed), func(k *key) bool { return k.held(now) })
	if len(free) == 0 {
		l.key = soonest(l.allowed)
		l.trial = l.key.state.HeldAt
	} else {
		l.key = slices.MinFunc(free, func(a, b *key) int { return a.runs - b.runs }) // of equal ones the first
	}
	l.key.runs++
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

// release lets a credential be used again that is held since a time.
func (r *keyring) release(k *key, since time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k.held(time.Now()) && k.state.HeldAt.Equal(since) {
		r.log.Info("a credential for the model is no longer held", "credential", k.Name)
		k.state.Until, k.state.Status, k.state.HeldAt = time.Time{}, 0, nowAfter(k.state.HeldAt)
	}
}

// lease is the use of one credential by a run, which keeps it to its end. It is safe for concurrent use.
type lease struct {
	ring    *keyring
	allowed []*key // that the run could have
	key     *key
	trial   time.Time // since when the credential is held that the run tries; zero: it was free

	ended bool // guarded by ring.mu
}

// accepted lets the credential be used again if it has been held since before the run.
func (l *lease) accepted() {
	if !l.trial.IsZero() {
		l.ring.release(l.key, l.trial)
	}
}

// refused holds the credential until a time because of an answer. served says that the model has worked for the run
// before. It returns when a run with the same permissions finds a credential that may serve it; zero: it would meet the
// same refusal.
func (l *lease) refused(res *http.Response, until time.Time, served bool) time.Time {
	if served && (deniesResource(res) || deniesModel(res)) { // the run has chosen what the account lacks
		return time.Time{}
	}
	l.ring.hold(l.key, until, res.StatusCode)
	at := l.freeAt()
	if !at.IsZero() && !at.After(time.Now()) {
		// otherwise the CLI repeats for minutes what another run can have at once
		res.Header.Set("X-Should-Retry", "false")
	}
	return at
}

// freeAt returns when one of the credentials that a run may have is free. Those that are held for another reason than a
// limit do not count. Zero: there are no others.
func (l *lease) freeAt() time.Time {
	l.ring.mu.Lock()
	defer l.ring.mu.Unlock()
	now := time.Now()
	able := slices.DeleteFunc(slices.Clone(l.allowed), func(k *key) bool { return k.rejected(now) })
	if len(able) == 0 {
		return time.Time{}
	}
	if at := soonest(able).state.Until; at.After(now) {
		return at
	}
	return now
}

// end returns the lease. It may be called again.
func (l *lease) end() {
	l.ring.mu.Lock()
	defer l.ring.mu.Unlock()
	if !l.ended {
		l.ended = true
		l.key.runs--
	}
}
