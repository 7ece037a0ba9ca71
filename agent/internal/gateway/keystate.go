package gateway

import (
	"cmp"
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// KeyState is what is known of a credential. Workers share it, so that one learns what the model has said to another.
type KeyState struct {
	Until   time.Time `json:"until,omitzero"`    // left out until then, because the model has refused it
	Status  int       `json:"status,omitempty"`  // with which it has
	HeldAt  time.Time `json:"held_at,omitzero"`  // when it did, or has accepted it again; zero: it has done neither
	Windows []Window  `json:"windows,omitempty"` // limits of a subscription
	Seen    time.Time `json:"seen,omitzero"`     // when the model said what of them is used; zero: it has not yet
	Cap     float64   `json:"cap_usd,omitempty"` // most US dollars a day; 0: any amount

	Reported time.Time `json:"reported,omitzero"` // about when a worker last had the credential

	CappedUntil time.Time `json:"-"` // the cap is reached: only runs under way that have no other credential use it
	Live        float64   `json:"-"` // US dollars that open runs have spent, which are not settled yet: those of this worker, or of the fleet
}

// Newer returns s with what of o is newer: whether it is held, and its windows.
func (s KeyState) Newer(o KeyState) KeyState {
	if o.HeldAt.After(s.HeldAt) {
		s.Until, s.Status, s.HeldAt = o.Until, o.Status, o.HeldAt
	}
	if o.Seen.After(s.Seen) {
		s.Windows, s.Seen = o.Windows, o.Seen
	}
	return s
}

// nowAfter returns the time of an event that follows one at last, which may be by the clock of another worker.
func nowAfter(last time.Time) time.Time {
	if now := time.Now(); now.After(last) {
		return now
	}
	return last.Add(time.Nanosecond)
}

// Window is how much of a usage limit is used.
type Window struct {
	Name     string    `json:"name"` // as the API calls it: 5h or 7d
	Used     float64   `json:"used"` // a part of 1, perhaps more
	ResetsAt time.Time `json:"resets_at,omitzero"`
}

// windowNames are the windows that the API reports.
var windowNames = []string{"5h", "7d"}

// windows reads the windows in the header of an answer; nil: it has none.
func windows(h http.Header, now time.Time) (list []Window) {
	for _, name := range windowNames {
		used, err := strconv.ParseFloat(h.Get("Anthropic-Ratelimit-Unified-"+name+"-Utilization"), 64)
		if err != nil || !(used >= 0 && used <= 100) { // written so that it also holds for NaN
			continue
		}
		w := Window{Name: name, Used: math.Round(used*100) / 100, ResetsAt: resetIn(h, name+"-Reset", now)}
		list = append(list, w)
	}
	return list
}

// MaxReset bounds how far ahead a limit is believed to be lifted: a little more than the longest window.
const MaxReset = 8 * 24 * time.Hour

// resetIn returns the time in a header of a subscription's limits; zero: it has none that can be right.
func resetIn(h http.Header, name string, now time.Time) time.Time {
	seconds, err := strconv.ParseInt(h.Get("Anthropic-Ratelimit-Unified-"+name), 10, 64)
	if err != nil || seconds <= now.Unix() || seconds > now.Add(MaxReset).Unix() {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}

// observe records the windows in the header of an answer.
func (r *keyring) observe(k *key, h http.Header) {
	list := windows(h, time.Now())
	if list == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(list, k.state.Windows) {
		k.state.Windows, k.state.Seen = list, nowAfter(k.state.Seen)
	}
}

// States returns what this worker knows of the credentials, by name. The only credential has none.
func (u *Upstream) States() map[string]KeyState {
	u.keys.mu.Lock()
	defer u.keys.mu.Unlock()
	all := map[string]KeyState{}
	for _, k := range u.keys.keys {
		all[k.Name] = k.state
	}
	return all
}

// Learn takes over what other workers know of credentials if it is newer, and which ones have reached their cap.
func (u *Upstream) Learn(all map[string]KeyState) {
	u.keys.mu.Lock()
	defer u.keys.mu.Unlock()
	for _, k := range u.keys.keys {
		s, ok := all[k.Name]
		if !ok {
			continue
		}
		k.state = k.state.Newer(s)
		k.state.CappedUntil = s.CappedUntil
	}
}

// ErrCapped refuses a run because all credentials that it may use have reached their cap.
var ErrCapped = errors.New("the credentials for the model have reached their caps for today")

// capped reports whether no further run may use a credential.
func (k *key) capped(now time.Time) bool { return k.state.CappedUntil.After(now) }

// Usable reports whether a run that has not begun may have the credential that it has now, or needs another one because that has
// reached its cap, or because its kind is held.
func (g *Gateway) Usable() bool {
	g.keys.ring.mu.Lock()
	defer g.keys.ring.mu.Unlock()
	now := time.Now()
	return g.keys.current != nil && !g.keys.current.capped(now) && startable(g.keys.allowed, g.keys.kind, now)
}

// tryAfter is how long after a refusal a held credential is tried again: its account may have been topped up.
const tryAfter = time.Hour

// held reports whether the model has refused a credential until later.
func (k *key) held(now time.Time) bool { return k.state.Until.After(now) }

// usable reports whether a credential is neither held, or may be tried again, nor capped.
func (k *key) usable(now time.Time) bool {
	return (!k.held(now) || now.Sub(k.state.HeldAt) >= tryAfter) && !k.capped(now)
}

// startable reports whether a run may start with a kind of credentials: one of them is neither held nor capped, or none of any kind is.
// A run with a held one that is tried again could not go on with another one.
func startable(keys []*key, kind string, now time.Time) bool {
	free := slices.DeleteFunc(slices.Clone(keys), func(k *key) bool { return k.held(now) || k.capped(now) })
	return len(free) == 0 || slices.ContainsFunc(free, func(k *key) bool { return k.kind == kind })
}

// freeAt returns when it becomes usable.
func (k *key) freeAt() time.Time {
	if k.state.CappedUntil.After(k.state.Until) {
		return k.state.CappedUntil
	}
	return k.state.Until
}

// Share is a credential's part of the cost of a run.
type Share struct {
	USD   float64 `json:"cost_usd"`
	Usage Usage   `json:"usage"`
}

// share adds what a call costs to the share of its credential. The caller holds the traffic's mu.
func (c *call) share(usd float64, u Usage) {
	if c.key == nil {
		return
	}
	if c.key.Name != "" {
		api := &c.traffic.api
		if api.Shares == nil {
			api.Shares = map[string]Share{}
		}
		s := api.Shares[c.key.Name]
		api.Shares[c.key.Name] = Share{s.USD + usd, s.Usage.Plus(u)}
	}
	c.lease.ring.mu.Lock()
	defer c.lease.ring.mu.Unlock()
	c.key.state.Live += usd
	c.lease.live[c.key] += usd
}

// best returns the usable credential that would have the fewest runs for its weight with one more, or nil.
func best(keys []*key, usable func(*key) bool) (found *key) {
	load := func(k *key) float64 { return float64(k.runs+1) / cmp.Or(k.Weight, 1) }
	for _, k := range keys {
		if usable(k) && (found == nil || load(k) < load(found)) {
			found = k
		}
	}
	return found
}

// soonest returns the credential that is free first.
func soonest(keys []*key) *key {
	return slices.MinFunc(keys, func(a, b *key) int { return a.freeAt().Compare(b.freeAt()) })
}
