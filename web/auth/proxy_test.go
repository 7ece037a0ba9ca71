package auth

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"testing"
)

// With two headers of groups, one may be the visitor's own.
func TestGroupsOfAProxy(t *testing.T) {
	t.Parallel()
	p := Proxy{Header: "X-User", Groups: "X-Groups", From: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}
	for name, c := range map[string]struct {
		lists, want []string
	}{
		"none":     {nil, nil},
		"one list": {[]string{"web, db"}, []string{"web", "db"}},
		"two":      {[]string{"web", "admins"}, nil},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.RemoteAddr = "192.0.2.7:1234"
		r.Header = http.Header{"X-User": {"ann"}, "X-Groups": c.lists}
		if id, ok := p.identity(r); !ok || !slices.Equal(id.Groups, c.want) {
			t.Errorf("%s: %+v, want %v", name, id, c.want)
		}
	}
}
