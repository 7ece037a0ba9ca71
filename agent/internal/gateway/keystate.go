package gateway

import (
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// KeyState is the state of a credential. Workers share it, so a refusal of one worker's request is known to all.
type KeyState struct {
	Until   time.Time `json:"until,omitzero"`    // held until then, because the model has refused it
	Status  int       `json:"status,omitempty"`  // HTTP status of the last refusal
	HeldAt  time.Time `json:"held_at,omitzero"`  // time of the last refusal or the acceptance after it; zero if none
	Windows []Window  `json:"windows,omitempty"` // limits of a subscription
	Seen    time.Time `json:"seen,omitzero"`     // time of the answer that Windows are from; zero if none

	Reported time.Time `json:"reported,omitzero"` // approximately when a worker last had the credential
}

// Newer returns s with the hold and the windows of o where those are newer.
func (s KeyState) Newer(o KeyState) KeyState {
	if o.HeldAt.After(s.HeldAt) {
		s.Until, s.Status, s.HeldAt = o.Until, o.Status, o.HeldAt
	}
	if o.Seen.After(s.Seen) {
		s.Windows, s.Seen = o.Windows, o.Seen
	}
	return s
}

// nowAfter returns the current time or, if last is later by another worker's clock, a time just after last.
func nowAfter(last time.Time) time.Time {
	if now := time.Now(); now.After(last) {
		return now
	}
	return last.Add(time.Nanosecond)
}

// Window is the usage of one limit of a subscription.
type Window struct {
	Name     string    `json:"name"` // the API's name: 5h or 7d
	Used     float64   `json:"used"` // fraction of the limit, which can exceed 1
	ResetsAt time.Time `json:"resets_at,omitzero"`
}

// windowNames are the windows that the API reports.
var windowNames = []string{"5h", "7d"}

// windows reads the windows in the header of an answer, or returns nil if there are none.
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

// MaxReset is the furthest reset time that is believed: slightly more than the longest window.
const MaxReset = 8 * 24 * time.Hour

// resetIn returns the time in a header of a subscription's limits, or zero if it is missing or implausible.
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

// States returns the state of each credential by name. The only credential has no name.
func (u *Upstream) States() map[string]KeyState {
	u.keys.mu.Lock()
	defer u.keys.mu.Unlock()
	all := map[string]KeyState{}
	for _, k := range u.keys.keys {
		all[k.Name] = k.state
	}
	return all
}

// Learn merges the states that other workers have stored, where they are newer.
func (u *Upstream) Learn(all map[string]KeyState) {
	u.keys.mu.Lock()
	defer u.keys.mu.Unlock()
	for _, k := range u.keys.keys {
		k.state = k.state.Newer(all[k.Name])
	}
}

// held reports whether the model has refused a credential until later.
func (k *key) held(now time.Time) bool { return k.state.Until.After(now) }

// rejected reports whether a credential is held for a reason that does not end with time, such as a wrong key. Limits
// end; with the status 400 only a cloud reports one.
func (k *key) rejected(now time.Time) bool {
	switch k.state.Status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return false
	case http.StatusBadRequest:
		return k.held(now) && k.Cloud == nil
	}
	return k.held(now)
}

// soonest returns the credential that becomes free first.
func soonest(keys []*key) *key {
	return slices.MinFunc(keys, func(a, b *key) int { return a.state.Until.Compare(b.state.Until) })
}
