package record

import (
	"testing"

	"github.com/errand-fleet/errand/store"
)

func TestReason(t *testing.T) {
	t.Parallel()
	for want, rec := range map[string]store.Record{
		"3rd in line; 2 of 2 runs busy in acme/payments": {
			State: store.Waiting, Why: "x", Blocked: store.Blocked{
				Scope: "repo:acme/payments", Runs: 2, Max: 2, Place: 3,
			},
		},
		"11th in line; 1 of 1 runs busy for the same person": {
			State: store.Waiting, Blocked: store.Blocked{Scope: "user:slack/U1", Runs: 1, Max: 1, Place: 11},
		},
		"2 tasks of this thread come first": {State: store.Waiting, Blocked: store.Blocked{Place: 2}},
		"no worker is free yet":             {State: store.Waiting},
		"the limit is reached":              {State: store.Waiting, Why: "the limit is reached"},
		"":                                  {State: store.Ended, Why: "x"},
	} {
		if got := Why(rec); got != want {
			t.Errorf("reason = %q, want %q", got, want)
		}
	}
}
