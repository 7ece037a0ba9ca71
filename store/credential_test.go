package store

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// refused returns why no run may start now with credential "c".
func (h *harness) refused(s *Store) *Held {
	h.Helper()
	err := s.Credentials.Admit(h.Context(), "c")
	var held *Held
	if !errors.As(err, &held) {
		h.Fatalf("admit = %v, want a refusal", err)
	}
	return held
}

// known returns the state of the only credential.
func (h *harness) known(s *Store) Credential {
	h.Helper()
	all := must(s.Credentials.List(h.Context()))
	if len(all) != 1 || all[0].Name != "c" {
		h.Fatalf("credentials: %+v, want c", all)
	}
	return all[0]
}

// set changes a field of it directly, as time would.
func (h *harness) set(field string, v int64) {
	h.Helper()
	h.ok(h.rdb.HSet(h.Context(), "errand:credential:c", field, v).Err())
}

func TestHeldCredential(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		h.ok(s.Credentials.Admit(ctx, "c"))
		h.ok(s.Credentials.Admit(ctx, "c")) // nothing is recorded about it
		if all := must(s.Credentials.List(ctx)); len(all) != 0 {
			h.Errorf("credentials: %+v", all)
		}
		until := time.Now().Add(time.Hour).Truncate(time.Microsecond).UTC()
		h.ok(s.Credentials.Hold(ctx, "c", until, 30*time.Second, "the limit is reached"))
		// reported by an earlier run
		h.ok(s.Credentials.Hold(ctx, "c", until.Add(-time.Minute), time.Second, "an earlier one"))
		want := &Held{At: until, Interval: 30 * time.Second, Why: "the limit is reached"}
		if diff := cmp.Diff(want, h.refused(s)); diff != "" {
			h.Error(diff)
		}
		if diff := cmp.Diff(Credential{
			"c", until, "the limit is reached", 30 * time.Second, "",
		}, h.known(s)); diff != "" {
			h.Error(diff)
		}
		h.ok(s.Credentials.Admit(ctx, "another"))

		h.set("until", 1) // the hold is over: one after the other
		h.ok(s.Credentials.Admit(ctx, "c"))
		if got := h.refused(s); got.Interval != 30*time.Second || got.Why != "" || got.At.Before(time.Now()) ||
			got.At.After(time.Now().Add(time.Minute)) {
			h.Errorf("behind the first: %+v", got)
		}
		h.set("next", 1)
		h.ok(s.Credentials.Admit(ctx, "c"))
		h.lapse("errand:credential:c", time.Hour+10*time.Minute)
		h.ok(s.Credentials.Admit(ctx, "c"))
		if all := must(s.Credentials.List(ctx)); len(all) != 0 {
			h.Errorf("afterwards: %+v", all)
		}
	})
}

func TestThrottledCredential(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		for _, want := range []int{1, 2, 4, 8, 16, 32, 60, 60} {
			h.ok(s.Credentials.Slow(ctx, "c"))
			h.ok(s.Credentials.Slow(ctx, "c")) // another run reports the same
			if got := h.known(s).Interval; got != time.Duration(want)*time.Second {
				h.Fatalf("interval %s, want %d s", got, want)
			}
			h.set("slowed", 1)
		}
		h.ok(s.Credentials.Admit(ctx, "c"))
		if got := h.refused(s); got.Interval != time.Minute || got.Why != "" {
			h.Errorf("behind the first: %+v", got)
		}
		for range 5 {
			h.ok(s.Credentials.Ease(ctx, "c"))
		}
		if got := h.known(s).Interval; got != 60*time.Second/32 {
			h.Errorf("interval %s, want a 32nd of a minute", got)
		}
		h.ok(s.Credentials.Ease(ctx, "c"))
		h.ok(s.Credentials.Admit(ctx, "c"))
		h.ok(s.Credentials.Admit(ctx, "c"))
		if n := h.rdb.Exists(ctx, "errand:credential:c").Val() + h.rdb.ZCard(ctx, "errand:credentials").Val(); n != 0 {
			h.Errorf("something is left of a credential that is free")
		}
		h.ok(s.Credentials.Ease(ctx, "c")) // which leaves nothing either
		if n := h.rdb.Exists(ctx, "errand:credential:c").Val(); n != 0 {
			h.Errorf("easing made a credential")
		}

		// successful runs do not end a hold
		h.ok(s.Credentials.Hold(ctx, "c", time.Now().Add(time.Hour), time.Second, "held"))
		h.ok(s.Credentials.Ease(ctx, "c"))
		if got := h.refused(s); got.Why != "held" || got.Interval != 0 {
			h.Errorf("eased while held: %+v", got)
		}
	})
}

// Runs may last for hours. Starts that the model does not throttle end the slow start without waiting for one to end.
func TestUnthrottledStartsHalveTheInterval(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		start := func(n int) {
			h.Helper()
			for range n {
				h.set("next", 1)
				h.ok(s.Credentials.Admit(ctx, "c"))
			}
		}
		h.ok(s.Credentials.Hold(ctx, "c", time.Now().Add(-time.Second), 4*time.Second, "the limit is reached"))
		start(unthrottledStarts - 1)
		h.ok(s.Credentials.Slow(ctx, "c")) // starts before this prove nothing
		start(unthrottledStarts - 1)
		if got := h.known(s).Interval; got != 8*time.Second {
			h.Errorf("interval %s, want 8 s", got)
		}
		start(1)
		if got := h.known(s).Interval; got != 4*time.Second {
			h.Errorf("interval %s, want 4 s", got)
		}
		start(3 * unthrottledStarts)
		if all := must(s.Credentials.List(ctx)); len(all) != 0 {
			h.Errorf("left: %+v", all)
		}
		h.ok(s.Credentials.Refuse(ctx, "c", "the model said 401"))
		h.ok(s.Credentials.Slow(ctx, "c"))
		start(unthrottledStarts)
		if got := h.known(s); got.Interval != 0 || got.Refused == "" {
			h.Errorf("a start is no sign that the credential is accepted: %+v", got)
		}
	})
}

// Names that were not confirmed for long should leave the index.
func TestCredentialsAreTrimmed(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		h.ok(s.Credentials.Slow(ctx, "old"))
		h.ok(h.rdb.ZAddXX(ctx, "errand:credentials", z(1, "old")).Err())
		h.ok(s.Credentials.Slow(ctx, "c"))
		h.known(s)
	})
}

// A credential that is refused keeps nothing from starting, and is no longer refused once a run succeeds with it,
// however slowly runs start.
func TestRefusedCredential(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		for _, slow := range []bool{false, true} {
			h.ok(s.Credentials.Refuse(ctx, "c", "the model said 401"))
			if slow { // which is kept for less time
				h.ok(s.Credentials.Slow(ctx, "c"))
				h.set("interval", 10*leastInterval.Microseconds())
			} else {
				h.ok(s.Credentials.Admit(ctx, "c"))
			}
			if got := h.known(s); got.Refused != "the model said 401" || !got.Until.IsZero() {
				h.Errorf("known: %+v", got)
			}
			if ttl := must(h.rdb.TTL(ctx, "errand:credential:c").Result()); ttl < refusedFor {
				h.Errorf("remembered for %v", ttl)
			}
			h.ok(s.Credentials.Ease(ctx, "c"))
			if known := must(s.Credentials.List(ctx)); len(known) > 0 && known[0].Refused != "" {
				h.Errorf("after a success: %+v", known)
			}
		}
	})
}

func TestCredentialsInUse(t *testing.T) {
	list := []Credential{{Name: "a"}, {Name: "b"}}
	for name, c := range map[string]struct {
		workers []Worker
		want    []Credential
	}{
		"nobody":                      {nil, list},
		"one":                         {[]Worker{{Credential: "b"}}, list[1:]},
		"another":                     {[]Worker{{Credential: "c"}}, nil},
		"one that keeps it to itself": {[]Worker{{Credential: "c"}, {}}, list},
	} {
		if diff := cmp.Diff(c.want, InUse(list, c.workers), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// A credential that is held is listed until ten minutes after that.
func TestHeldCredentialIsListed(t *testing.T) {
	onBoth(t, func(h *harness) {
		ctx, s := h.Context(), h.store(Config{})
		until := time.Now().Add(time.Hour)
		h.ok(s.Credentials.Hold(ctx, "c", until, time.Second, "held"))
		listed := time.UnixMicro(int64(h.rdb.ZScore(ctx, "errand:credentials", "c").Val()))
		if over := listed.Sub(until.Add(10 * time.Minute)).Abs(); over > time.Minute {
			h.Errorf("held until %s, and listed until %s", until, listed)
		}
	})
}
