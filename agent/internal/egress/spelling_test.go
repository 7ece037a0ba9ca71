package egress

import (
	"log/slog"
	"net/url"
	"testing"
)

// A server may read a path in other ways than the proxy.
func TestPathsOfARegistry(t *testing.T) {
	t.Parallel()
	r := &Registry{Paths: []string{"/npm/"}}
	for path, want := range map[string]bool{
		"/npm/left-pad": true, "/npm/@acme%2fweb": true, "/npm": true, "/npmx/y": false, "/api/npm/": false,
		"/npm/../api": false, "/npm/%2e%2e/api": false, "/npm/%252e%252e/api": false, "/npm/..;/api": false,
		"/npm/;a=b/api": false, `/npm/..\api`: false,
	} {
		u, err := url.Parse("https://npm.corp.example" + path)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.allows(u); got != want {
			t.Errorf("%s: %t, want %t", path, got, want)
		}
	}
}

// The company's proxy is left out for the name that is connected to, however a run has spelled it.
func TestNamesOutsideTheProxy(t *testing.T) {
	t.Parallel()
	env := map[string]string{"HTTP_PROXY": "http://proxy.corp.example:3128", "NO_PROXY": ".corp.example"}
	n := NewNetwork(Config{Getenv: func(name string) string { return env[name] }, Log: slog.New(slog.DiscardHandler)})
	p := n.Open(func(string, ...any) {})
	t.Cleanup(p.Close)
	for host, direct := range map[string]bool{
		"vault.corp.example": true, "vault.corp.example.": true, "VAULT.corp.example.": true, "pypi.org.": false,
	} {
		target, ok := parseTarget(host + ":80")
		if got := p.transport(target) == p.direct; !ok || got != direct {
			t.Errorf("%s: direct %t, want %t", host, got, direct)
		}
	}
}
