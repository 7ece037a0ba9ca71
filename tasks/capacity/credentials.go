package capacity

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/internal/format"
)

// credentialsMemo is the memo in which workers share what they know of the credentials for the model.
const credentialsMemo = "credentials"

// credentialsFor is how long a credential is remembered that no worker has: longer than its windows.
const credentialsFor = 8 * 24 * time.Hour

// ShareCredentials adds what a worker knows of the credentials for the model to what the fleet knows, and returns that.
// The newer state wins.
func ShareCredentials(
	ctx context.Context, s *store.Store, own map[string]agent.CredentialState,
) (fleet map[string]agent.CredentialState, err error) {
	err = s.Memos.ChangeMemo(ctx, credentialsMemo, func(body json.RawMessage) (json.RawMessage, error) {
		fleet = readCredentials(body)
		before, now := maps.Clone(fleet), time.Now().UTC().Truncate(time.Second)
		for name, state := range own {
			known := fleet[name].Newer(state)
			if now.Sub(known.Reported) >= time.Hour {
				known.Reported = now
			}
			fleet[name] = known
		}
		if maps.EqualFunc(fleet, before, sameCredential) {
			return nil, nil
		}
		return format.JSON(fleet), nil
	})
	return fleet, err
}

func sameCredential(a, b agent.CredentialState) bool {
	return a.HeldAt.Equal(b.HeldAt) && a.Seen.Equal(b.Seen) && a.Reported.Equal(b.Reported)
}

// readCredentials decodes the memo. It leaves out what is old.
func readCredentials(body json.RawMessage) map[string]agent.CredentialState {
	all := map[string]agent.CredentialState{}
	if json.Unmarshal(body, &all) != nil {
		return map[string]agent.CredentialState{}
	}
	maps.DeleteFunc(all, func(_ string, s agent.CredentialState) bool {
		return time.Since(s.Reported) > credentialsFor
	})
	return all
}

// CredentialUse is what the fleet knows of one credential for the model.
type CredentialUse struct {
	Name  string  `json:"name"` // in errand.yaml, or that of a worker's only credential
	Spent float64 `json:"spent_today_usd"`
	agent.CredentialState
}

// Credentials lists the credentials for the model that workers have used lately, with what they have spent today.
func Credentials(ctx context.Context, s *store.Store) (list []CredentialUse, err error) {
	body, err := s.Memos.Memo(ctx, credentialsMemo)
	if err != nil {
		return nil, err
	}
	states := readCredentials(body)
	for _, name := range slices.Sorted(maps.Keys(states)) {
		one := CredentialUse{Name: name, CredentialState: states[name]}
		if one.Spent, err = s.Costs.Spent(ctx, store.CredentialScope+name); err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}
