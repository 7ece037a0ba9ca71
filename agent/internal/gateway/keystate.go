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

// KeyState is the state of a credential. Workers share it, so a refusal of one worker's request is known to all.
type KeyState struct {
	Until   time.Time `json:"until,omitzero"`    // held until then, because the model has refused it
	Status  int       `json:"status,omitempty"`  // HTTP status of the last refusal
	HeldAt  time.Time `json:"held_at,omitzero"`  // time of the last refusal or the acceptance after it; zero if none
	Windows []Window  `json:"windows,omitempty"` // limits of a subscription
	Seen    time.Time `json:"seen,omitzero"`     // time of the answer that Windows are from; zero if none
	Cap     float64   `json:"cap_usd,omitempty"` // maximum US dollars a day; 0 is unlimited

	Reported time.Time `json:"reported,omitzero"` // approximately when a worker last had the credential

	CappedUntil time.Time `json:"-"` // end of the cap; until then only open runs use it
	Live        float64   `json:"-"` // unsettled US dollars of open runs, of this worker or of the fleet
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

// Learn merges the states that other workers have stored, where they are newer, and takes over which caps are reached.
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

// freeAt returns the time when the credential is neither held nor capped.
func (k *key) freeAt() time.Time {
	if k.state.CappedUntil.After(k.state.Until) {
		return k.state.CappedUntil
	}
	return k.state.Until
}

// lightest returns the credential with the fewest runs per weight, counting the new run; of equal ones the first.
func lightest(keys []*key) *key {
	load := func(k *key) float64 { return float64(k.runs+1) / cmp.Or(k.Weight, 1) }
	return slices.MinFunc(keys, func(a, b *key) int { return cmp.Compare(load(a), load(b)) })
}

// soonest returns the credential that becomes free first.
func soonest(keys []*key) *key {
	return slices.MinFunc(keys, func(a, b *key) int { return a.freeAt().Compare(b.freeAt()) })
}
