package gateway

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// costing answers with usage, and with the headers.
func costing(input int, header ...string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		for pair := range slices.Chunk(header, 2) {
			w.Header().Set(pair[0], pair[1])
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"model":"claude-opus-5-5","usage":{"input_tokens":`+strconv.Itoa(input)+`}}`)
	}
}

// The windows of a subscription are those of the latest answer that has any, also with one credential.
func TestWindows(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	u, _ := several(t, b, Named{Name: "s", Credential: Credential{OAuthToken: "token-s"}})
	g := open(t, u)
	const five, seven = "anthropic-ratelimit-unified-5h-", "anthropic-ratelimit-unified-7d-"
	reset := time.Now().Add(5 * time.Hour).Truncate(time.Second).UTC()
	far := time.Now().Add(time.Hour).UnixMilli() // as seconds a year that JSON cannot express
	b.says("token-s", costing(1, five+"utilization", "0.4321", five+"reset", strconv.FormatInt(reset.Unix(), 10),
		seven+"utilization", "1.02", seven+"reset", strconv.FormatInt(far, 10)))
	ask(t, g)
	b.says("token-s", costing(1, five+"utilization", "NaN"))
	ask(t, g)
	want := []Window{{"5h", 0.43, reset}, {Name: "7d", Used: 1.02}}
	if diff := cmp.Diff(want, u.States()["s"].Windows); diff != "" {
		t.Errorf("windows (-want +got):\n%s", diff)
	}
}

// What one worker finds out about a credential holds for another one, until that knows something newer.
func TestWorkersLearn(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	b.says("key-a", limited(time.Now().Add(time.Hour)))
	one, _ := several(t, b, apiKey("a"), apiKey("b"))
	other, _ := several(t, b, apiKey("a"), apiKey("b"))
	ask(t, open(t, one))
	b.taken()
	other.Learn(one.States())
	if ask(t, open(t, other)); !slices.Equal(b.taken(), []string{"key-b"}) {
		t.Error("the other worker asks with the credential that is held")
	}
	old := one.States()
	one.keys.release(one.keys.keys[0], one.keys.keys[0].state.HeldAt)
	other.Learn(one.States())
	other.Learn(old)
	if until := other.States()["a"].Until; !until.IsZero() {
		t.Errorf("held until %v", until)
	}
}

// A hold stays although another worker whose clock is ahead reports other windows, or has accepted the credential
// before.
func TestHoldsOfClocksThatDiffer(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	u, _ := several(t, b, apiKey("a"), apiKey("b"))
	ahead := time.Now().Add(time.Hour)
	accepted := map[string]KeyState{"a": {HeldAt: ahead}}
	u.Learn(accepted)
	b.says("key-a", limited(time.Now().Add(2*time.Hour)))
	ask(t, open(t, u))
	u.Learn(accepted)
	u.Learn(map[string]KeyState{"a": {Seen: ahead, Windows: []Window{{Name: "5h", Used: 1}}}})
	if a := u.States()["a"]; !a.Until.After(time.Now()) || len(a.Windows) != 1 {
		t.Errorf("known: %+v", a)
	}
}

// If all credentials are held, a run starts with the one that is free first. If the model accepts it, it is no longer
// held; the answers to a run that began before the hold show nothing.
func TestHeldCredentialIsTried(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	u, _ := several(t, b, apiKey("a"), apiKey("b"))
	before := open(t, u, "a")
	for i, k := range u.keys.keys {
		u.keys.hold(k, time.Now().Add(time.Duration(1+i)*time.Hour), http.StatusTooManyRequests)
	}
	ask(t, before)
	if !u.keys.keys[0].held(time.Now()) {
		t.Error("an earlier run has released the credential")
	}
	for _, held := range []bool{true, false} {
		if b.says("key-a", nil); held {
			b.says("key-a", limited(time.Now().Add(time.Hour)))
		}
		b.taken()
		g := open(t, u)
		status, _ := ask(t, g)
		if asked := b.taken(); (status == http.StatusOK) == held || asked[0] != "key-a" ||
			u.keys.keys[0].held(time.Now()) != held {
			t.Errorf("status %d, asked %q, known %+v", status, asked, u.States()["a"])
		}
		if held {
			continue
		}
		u.keys.hold(u.keys.keys[0], time.Now().Add(time.Hour), http.StatusTooManyRequests)
		ask(t, g)
		if !u.keys.keys[0].held(time.Now()) {
			t.Error("a later hold does not last, because the run had tried the one before")
		}
	}
}
