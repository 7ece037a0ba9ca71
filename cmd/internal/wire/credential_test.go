package wire

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/config"
)

func TestCredentialName(t *testing.T) {
	t.Parallel()
	const key = "sk-ant-of-the-fleet"
	name := func(base, key string) string {
		return credentialName(config.Config{Model: config.Model{BaseURL: base, APIKey: config.Secret(key)}})
	}
	got := name("https://a", key)
	if again := name("https://a", key); got == "" || got != again || strings.Contains(key, got) {
		t.Errorf("name %q, again %q", got, again)
	}
	if got == name("https://b", key) || got == name("https://a", "another") {
		t.Error("two credentials have one name")
	}
	if got := name("https://a", ""); got != "" {
		t.Errorf("no credential is named %q", got)
	}
}

// The command of the model's token ends with the request that wants it.
func TestModelTokenOfCancelledRequest(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := modelToken(config.Model{TokenCommand: "sleep 1000"}).Fetch(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
