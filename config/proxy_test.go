package config

import (
	"strings"
	"testing"
)

// An agent is a local user, so no address that it has as well can be a proxy's.
func TestLoopbackIsNoProxy(t *testing.T) {
	t.Parallel()
	for networks, want := range map[string]string{
		"192.0.2.7": "", "10.0.0.0/8,2001:db8::7": "",
		"127.0.0.1": "127.0.0.0/8", "10.0.0.1,127.9.9.9": "127.0.0.0/8", "0.0.0.0/0": "127.0.0.0/8", "::1": "::1/128",
		"::/0": "::1/128",
	} {
		_, err := load(getenv(map[string]string{
			"REDIS_URL": "redis://localhost", "ERRAND_CONSOLE_TOKEN": "console-token-0123",
			"ERRAND_TRUSTED_PROXY_HEADER": "X-Forwarded-User", "ERRAND_TRUSTED_PROXIES": networks,
		}), machine(t, nil), RoleFrontdoor)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), "must not include "+want) {
			t.Errorf("%s: %v", networks, err)
		}
	}
}
