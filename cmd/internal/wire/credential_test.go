package wire

import (
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
	if name("https://a", key) == "" || name("https://a", key) != name("https://a", key) || strings.Contains(name("https://a", key), key) {
		t.Errorf("name %q", name("https://a", key))
	}
	if name("https://a", key) == name("https://b", key) || name("https://a", key) == name("https://a", "another") {
		t.Error("two credentials have one name")
	}
	if got := name("https://a", ""); got != "" {
		t.Errorf("no credential is named %q", got)
	}
}
