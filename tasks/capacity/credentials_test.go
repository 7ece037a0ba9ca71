package capacity

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/redisserver/redistest"
	"github.com/errand-fleet/errand/store"
)

// memory is what the fleet remembers, in a real Redis.
type memory struct {
	*testing.T
	store *store.Store
}

func newMemory(t *testing.T) *memory {
	t.Helper()
	client := redistest.Client(t, redistest.Start(t))
	s, err := store.New(store.Config{Redis: client})
	if err != nil {
		t.Fatal(err)
	}
	return &memory{t, s}
}

// share shares what a worker knows of its only credential, and returns what the fleet knows of it then.
func (f *memory) share(own agent.CredentialState) agent.CredentialState {
	f.Helper()
	all, err := ShareCredentials(f.Context(), f.store, map[string]agent.CredentialState{"a": own})
	if err != nil {
		f.Fatal(err)
	}
	return all["a"]
}

// remembers changes what the fleet knows.
func (f *memory) remembers(s agent.CredentialState) {
	f.Helper()
	body, err := json.Marshal(map[string]agent.CredentialState{"a": s})
	if err != nil {
		f.Fatal(err)
	}
	err = f.store.Memos.ChangeMemo(f.Context(), credentialsMemo, func(json.RawMessage) (json.RawMessage, error) {
		return body, nil
	})
	if err != nil {
		f.Fatal(err)
	}
}

// A hold and the windows of a credential come from the worker that knows each best. A worker that knows nothing
// overwrites neither.
func TestCredentialsAreMerged(t *testing.T) {
	t.Parallel()
	f := newMemory(t)
	now := time.Now().UTC()
	f.share(agent.CredentialState{Until: now.Add(time.Hour), Status: 429, HeldAt: now})
	f.share(agent.CredentialState{
		Seen: now.Add(time.Second), Windows: []agent.CredentialWindow{{Name: "5h", Used: 0.5}},
	})
	if got := f.share(agent.CredentialState{}); !got.Until.After(now) || got.Status != 429 ||
		len(got.Windows) != 1 {
		t.Errorf("the fleet knows %+v", got)
	}
}

// A credential is known as long as a worker has it, whenever the model last said something new about it.
func TestQuietCredentialsAreKnown(t *testing.T) {
	t.Parallel()
	f := newMemory(t)
	day, now := 24*time.Hour, time.Now().UTC()
	quiet := agent.CredentialState{Seen: now.Add(-20 * day), Windows: []agent.CredentialWindow{{Name: "7d", Used: 0.1}}}
	for name, reported := range map[string]time.Time{
		"forgotten": now.Add(-9 * day), "yesterday": now.Add(-day), "just now": now.Add(-time.Minute),
	} {
		known := quiet
		known.Reported = reported
		f.remembers(known)
		list, err := Credentials(t.Context(), f.store)
		if err != nil || (len(list) == 1) != (name != "forgotten") {
			t.Errorf("%s: %v, shown %+v", name, err, list)
		}
		got := f.share(quiet)
		if renewed := got.Reported.After(reported); renewed != (name != "just now") || len(got.Windows) != 1 {
			t.Errorf("%s: the fleet knows %+v", name, got)
		}
	}
}
